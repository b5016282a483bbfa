"""What all tests share: the choice of the database, and a project to work in.

``pytest`` runs the tests on SQLite, and those that need no database. ``pytest --db postgres``
starts one PostgreSQL for all processes of the run, with a database for each, and runs the tests
that use a database. A test of something that only one of the two does has the mark ``sqlite_only``
or ``postgres_only``, and is collected only there.

Without paths, ``-k`` or ``-m`` pytest runs the quick tier, which takes a few minutes. ``--tier
full`` runs the rest, ``--tier all`` everything. ``tests/tiers.py`` has the rule.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib
import itertools
import os
import shutil
import sqlite3
import sys
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest
from xdist.scheduler import LoadScopeScheduling

from tests import run_folder, tiers
from tests.postgres import FAST, Postgres, address

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from pathlib import Path

_FOLDER = run_folder.begin()
_SERVER_FOLDER = _FOLDER / "postgres"
_URL = "STATEYARD_TEST_DATABASE_URL"
_PROVIDERS = "hypothesis.internal.conjecture.providers"
_server: Postgres | None = None

# on a loaded machine inputs are slow to make and examples slow to run, which is no fault of either
hypothesis.settings.register_profile(
    "loaded", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("loaded")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--db``, which ``tests.settings`` has read from the command line already."""
    parser.addoption(
        "--db",
        choices=("sqlite", "postgres"),
        default="sqlite",
        help="postgres: start a PostgreSQL and run the tests that use the database",
    )
    parser.addoption(
        "--tier",
        choices=tiers.TIERS,
        help="quick: a few minutes, the default of a bare pytest; full: the rest; all: both",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Start the PostgreSQL of the run, in the first of its processes."""
    global _server  # noqa: PLW0603 - one server a run
    if (config.getoption("--db") == "postgres") != bool(os.environ.get(_URL)):
        raise pytest.UsageError("--db is read from the command line and PYTEST_ADDOPTS only")
    # the browser's driver runs an event loop in the thread of the tests; servers do without this
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"
    sent: dict[str, Any] | None = getattr(config, "workerinput", None)
    is_first = sent is None
    config.option.tier = tiers.chosen(config) if sent is None else sent["tier"]
    if config.option.tier == "quick":
        # for four tests, each process would parse the whole product for constants to try
        patch = pytest.MonkeyPatch()
        patch.setattr(f"{_PROVIDERS}.is_local_module_file", lambda _: False)
    if is_first and os.environ.get(_URL) == address(_SERVER_FOLDER) and _server is None:
        _server = Postgres(_SERVER_FOLDER, *FAST)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Send the tier to a process of the run, which does not know how the run was called."""
    node.workerinput["tier"] = node.config.option.tier
    node.workerinput["all_files"] = tiers.are_all_files(node.config)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Stop the server; the reaper of the run does the rest."""
    del config
    if _server is not None:
        _server.stop()


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Return three processes for two processors: each waits for servers part of its time.

    Tests of the full tier wait for more than half of it: there are four.
    """
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 2
    return processors * 2 if config.getoption("--tier") == "full" else processors + processors // 2


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Forget the settings of projects, which a process remembers for a moment."""
    from django.apps import apps

    if apps.ready:
        from console.config import quotas
        from console.db import project_settings

        quotas.forget()
        project_settings._remembered.clear()
        project_settings._used.clear()


_SURVEYS = {
    "tests/console/store/test_packages.py",
    "tests/test_architecture.py",
    "tests/test_features.py",
    "tests/test_house.py",
    "tests/test_prose.py",
    "tests/test_troubleshooting.py",
}
"""Files of tests that parse the whole source: one process does so once."""

_EVERY_PAGE = "tests/acceptance/browser/test_every_page.py"
"""Its tests take minutes: each part of the pages goes to any process."""

_APART = (
    "tests/chaos/",
    "tests/console/integrations/test_sdk_names.py",
    "tests/console/web/core/test_stored_extremes.py",
    "tests/features/test_left_out.py",
    "tests/security/test_foreign_names.py",
    "tests/security/test_leaks.py",
)
"""Long tests that share nothing: each goes to any process."""


class _ByFile(LoadScopeScheduling):
    """Give each file to one process, because its tests share servers.

    Files are given out in the order of the tests, see ``_in_order``.
    """

    def __init__(self, config: pytest.Config, log: Any) -> None:
        super().__init__(config, log)
        config.option.loadscopereorder = False  # else those with the most tests would come first

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        if file in _SURVEYS:
            return "surveys"
        if file == _EVERY_PAGE:
            return nodeid.partition("[")[2]
        return nodeid if file.startswith(_APART) else file


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling | None:
    """Return our scheduler, unless another one was asked for."""
    return _ByFile(config, log) if config.getvalue("dist") == "loadfile" else None


@pytest.fixture(scope="session")
def django_db_modify_db_settings(django_db_modify_db_settings: None) -> None:
    """Give SQLite's test database the tables of a new one: migrations take two seconds."""
    del django_db_modify_db_settings
    from django.db import connection

    from console.db import ready_tables

    if connection.vendor == "sqlite":
        name = connection.settings_dict["TEST"]["NAME"]
        with contextlib.closing(sqlite3.connect(name)) as database:
            database.executescript(ready_tables.SCRIPT.read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def django_db_keepdb() -> bool:
    """Let Django take that database as it is; the folder of the run is deleted with it."""
    from django.db import connection

    return connection.vendor == "sqlite"


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """End the sessions that threads of the product still have, so that the database can go."""
    del django_db_setup
    yield
    from django.db import connection

    if connection.vendor == "postgresql":
        with django_db_blocker.unblock(), connection.cursor() as cursor:
            cursor.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )


@pytest.fixture(scope="session", autouse=True)
def _tables_are_emptied() -> Iterator[None]:
    """Delete the rows of a test and no more.

    Django's ``flush`` also writes all content types and permissions anew, which takes longer than
    most tests; and on PostgreSQL it makes new files for every table.
    """
    from django.test import TransactionTestCase

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TransactionTestCase, "_fixture_teardown", lambda _: _empty_tables())
        yield


def _empty_tables() -> None:
    from django.db import connection, transaction

    with transaction.atomic(), connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("; ".join(f"DELETE FROM {name}" for name in _tables()))
            return
        each = (f"SELECT '{name}' WHERE EXISTS (SELECT 1 FROM {name})" for name in _tables())
        cursor.execute(" UNION ALL ".join(each))
        for (name,) in cursor.fetchall():
            cursor.execute(f"DELETE FROM {name}")


@functools.cache
def _tables() -> list[str]:
    """Return the names of the tables that a test may fill."""
    from django.db import connection

    keep = {"django_content_type", "auth_permission"}
    return sorted({*connection.introspection.django_table_names(only_existing=True)} - keep)


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Collect tests without garbage collections, which took half of the time.

    Later collections leave out what was imported here: each would look at millions of objects.
    """
    gc.disable()
    try:
        _import_files(session.config)
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(7_000)  # each page makes thousands of objects that are gone after it
        gc.enable()


def _import_files(config: pytest.Config) -> None:
    """Import the files of tests, each process of a run from another one on.

    Collected in the same order, all processes of a first run would compile each file at the same
    time. So each finds the bytecode that another one has written. Collection reports the errors.
    """
    sent: dict[str, Any] = getattr(config, "workerinput", {})
    if not sent.get("all_files"):
        return
    files = [
        path.relative_to(config.rootpath)
        for path in sorted(config.rootpath.glob("tests/**/test_*.py"))
        if not pytest_ignore_collect(path, config)
    ]
    first = len(files) * int(sent["workerid"].removeprefix("gw")) // sent["workercount"]
    for path in files[first:] + files[:first]:
        with contextlib.suppress(Exception, pytest.skip.Exception):
            importlib.import_module(".".join(path.with_suffix("").parts))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out the folders and files that have no test of the tier."""
    if collection_path.suffix != ".py" and not collection_path.is_dir():
        return None
    place = collection_path.relative_to(config.rootpath).as_posix()
    place += "/" * collection_path.is_dir()
    on_postgres = bool(os.environ.get(_URL))
    tier = config.getoption("--tier")
    is_of_tier = tiers.may_include(tier, collection_path, place, on_postgres=on_postgres)
    return None if is_of_tier else True


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the tests of the other database and of the other tier."""
    on_postgres = bool(os.environ.get(_URL))
    tier = config.getoption("--tier")
    chosen = [
        item
        for item in items
        if _belongs(item, on_postgres=on_postgres)
        and tiers.includes(tier, item, on_postgres=on_postgres)
    ]
    kept = set(chosen)
    others = [item for item in items if item not in kept]
    if others:
        config.hook.pytest_deselected(items=others)
    items[:] = _in_order(chosen)


_SHORT = ("tests/console/", "tests/engine/", "tests/features/")
"""Folders of short files, except for these."""
_LONG = (
    "tests/console/awsapi/test_extremes.py",
    "tests/console/awsapi/test_hostile_texts.py",
    "tests/console/config/test_settings.py",
    "tests/console/db/test_upgrade.py",
    "tests/console/integrations/test_offered_actions.py",
    "tests/console/integrations/test_sdk_names.py",
    "tests/console/migrations/",
    "tests/console/web/core/test_extremes.py",
    "tests/console/web/core/test_stored_extremes.py",
    "tests/console/worker/test_crash_points.py",
    "tests/console/worker/test_map_runs.py",
    "tests/console/worker/test_redrive.py",
    "tests/engine/data/test_jsonata_extremes.py",
    "tests/engine/language/test_hostile_definitions.py",
    "tests/engine/language/test_schema.py",
    "tests/features/coverage/test_command.py",
    "tests/features/deploy/test_deploy.py",
    "tests/features/doctor/test_invariants.py",
    "tests/features/load/test_load.py",
    "tests/features/logs/test_command.py",
    "tests/features/notifications/test_relay_deaths.py",
    "tests/features/reproduce/test_fetch.py",
    "tests/features/resilience/test_command.py",
    "tests/features/review/",
    "tests/features/test_approvals_left_out.py",
    "tests/features/test_left_out.py",
    "tests/features/test_needs.py",
    "tests/features/test_operations_left_out.py",
    "tests/features/test_state/scenarios/test_generated.py",
)
"""They start servers or try thousands of values: begun last, one would run alone at the end."""


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Say that a run of the quick tier was not the whole suite."""
    if config.getoption("--tier") == "quick":
        terminalreporter.write_line(
            "This was the quick tier. The full tier (browser, processes, chaos, simulation):"
            " pytest --tier full"
        )


def _is_short(item: pytest.Item) -> bool:
    return item.nodeid.startswith(_SHORT) and not item.nodeid.startswith(_LONG)


def _in_order(items: list[pytest.Item]) -> list[pytest.Item]:
    """Return tests in the order in which they are given out.

    Short files come last: they keep all processes at work until the end. The chaos tests, which
    mostly wait, are spread among them, so that other processes can compute meanwhile.
    """
    chaos = [item for item in items if item.nodeid.startswith("tests/chaos/")]
    short = [item for item in items if _is_short(item)]
    taken = {*chaos, *short}
    ordered = [item for item in items if item not in taken]
    total = len(chaos)
    groups = itertools.groupby(short, key=lambda item: item.nodeid.partition("::")[0])
    files = [list(group) for _, group in groups]
    before_end = len(files) * 4 // 5  # a chaos test given out last would keep one process alone
    for number, file in enumerate(files):
        while chaos and (before_end - number) * total <= before_end * len(chaos):
            ordered.append(chaos.pop(0))
        ordered += file
    return ordered + chaos


def _belongs(item: pytest.Item, *, on_postgres: bool) -> bool:
    """Return whether a test runs on the chosen database."""
    if not on_postgres:
        return item.get_closest_marker("postgres_only") is None
    if item.get_closest_marker("sqlite_only") is not None:
        return False
    uses_database = {"db", "transactional_db"} & set(getattr(item, "fixturenames", ()))
    return bool(uses_database) or any(
        item.get_closest_marker(name) is not None for name in ("postgres_only", "django_db")
    )


@pytest.fixture(scope="session")
def chromium() -> str:
    """Return the path of a chromium; without one the test is skipped, in CI it fails.

    The headless shell opens pages in a third of the processor time.
    """
    return _browser("chromium-headless-shell", "chromium", "chromium-browser")


@pytest.fixture(scope="session")
def whole_chromium() -> str:
    """Return the path of a chromium with all parts, such as the cache of pages to go back to."""
    return _browser("chromium", "chromium-browser")


def _browser(*programs: str) -> str:
    path = next(filter(None, map(shutil.which, programs)), None)
    if path is None:
        if os.environ.get("STATEYARD_REQUIRE_BROWSER"):
            pytest.fail("no chromium on the PATH")
        pytest.skip("no chromium on the PATH")
    return path


@pytest.fixture(autouse=True)
def _no_refusals_of_others() -> None:
    """Forget what other tests were refused in this minute: the number of rows is limited."""
    refusals = sys.modules.get("console.db.refusals")
    if refusals is not None:
        refusals.LIMIT.forget()


@pytest.fixture
def project(transactional_db: None) -> Any:
    """Return a project in an empty database whose writer thread can see it."""
    del transactional_db
    from console.models import Project

    return Project.objects.create(name="default", account_id="123456789012")


@pytest.fixture
def worker(project: Any) -> Iterator[Any]:
    """Run an embedded worker beside the test."""
    del project
    from console.worker import Embedded

    worker = Embedded()
    worker.start()
    yield worker
    worker.stop()
