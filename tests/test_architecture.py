"""The direction of imports, and the purity of the engine."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from tests.architecture import dotted, survey

ROOT = Path(__file__).parent.parent
ORDER = [
    ("engine.errors", "engine.jsontext"),
    ("engine.data",),
    ("engine.language",),
    ("engine.history.event_types",),
    ("engine.runtime",),
    ("engine.graph",),
    ("engine.history.batch",),
    ("engine.history.visits",),
    ("engine.history.fold",),
    ("engine.history.owners",),
    ("engine.differences", "engine.limits_ahead", "engine.replay"),
    ("engine.coverage",),
]
IMPURE = {
    "asyncio",
    "datetime.datetime.now",
    "django",
    "httpx",
    "multiprocessing",
    "secrets",
    "socket",
    "sqlite3",
    "threading",
    "time",
    "urllib",
}
# The JSONata evaluator runs in a child process, which needs a clock and pipes to be held to its
# limits.
MAY_TOUCH_THE_WORLD = {
    "engine/data/jsonata_child.py",
    "engine/data/jsonata_pool.py",
    "engine/data/jsonata_dialect.py",  # the clock, for an expression's limit of time
}


@cache
def modules(package: str) -> list[Path]:
    """Return the source files of a package."""
    return sorted((ROOT / package).rglob("*.py"))


@cache
def imports(path: Path, *, typing_too: bool = True) -> set[str]:
    """Return the dotted names a file imports."""
    module = survey().get(dotted(path))  # all modules but migrations
    tree = module.tree if module else ast.parse(path.read_text(encoding="utf-8"))
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    if not typing_too:
        for node in ast.walk(tree):
            if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
                for child in ast.walk(node):
                    if isinstance(child, ast.ImportFrom) and child.module:
                        names -= {child.module, *(f"{child.module}.{a.name}" for a in child.names)}
    return names


def layer(name: str) -> int | None:
    """Return the place of a module in the order, None if it has none."""
    for place, prefixes in enumerate(ORDER):
        if any(name == prefix or name.startswith(prefix + ".") for prefix in prefixes):
            return place
    return None


def test_engine_imports_point_down() -> None:
    """errors, jsontext <- data <- language <- runtime <- graph <- the door."""
    for path in modules("engine"):
        own = layer(dotted(path))
        if own is None:
            continue
        for name in imports(path, typing_too=False):
            other = layer(name)
            assert other is None or other <= own, f"{dotted(path)} imports {name}"


def test_engine_is_pure() -> None:
    """No clock, no network, no database, no Django, nothing of the console."""
    for path in modules("engine"):
        place = str(path.relative_to(ROOT))
        if place in MAY_TOUCH_THE_WORLD:
            continue
        roots = {name.split(".")[0] for name in imports(path)}
        assert not roots & (IMPURE | {"console"}), place
        text = path.read_text(encoding="utf-8")
        assert not [call for call in (".now(", "uuid4(", "random.random(") if call in text], place


def test_console_uses_the_door_only() -> None:
    """The shell imports ``engine`` itself, never its inner modules."""
    door = {f"engine.{name}" for name in _door()}
    for path in modules("console"):
        inner = {name for name in imports(path) if name.startswith("engine.")} - door
        assert not inner, f"{dotted(path)} imports {sorted(inner)}"


def _door() -> set[str]:
    tree = ast.parse((ROOT / "engine/__init__.py").read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return set(ast.literal_eval(node.value))
    raise AssertionError("engine has no __all__")


@pytest.mark.parametrize(
    ("package", "forbidden"),
    [
        ("console/awsapi", ("console.web",)),
        ("console/web", ("console.awsapi",)),
        ("console/store", ("console.worker", "console.awsapi", "console.web")),
        (
            "console/integrations",
            ("console.store", "console.worker", "console.awsapi", "console.web"),
        ),
        ("console/worker", ("console.awsapi", "console.web")),
        ("console/masking", ("console.worker", "console.awsapi", "console.web")),
    ],
)
def test_shell_layers(package: str, forbidden: tuple[str, ...]) -> None:
    """Models <- store <- worker, awsapi, web; integrations see the engine's door only."""
    for path in modules(package):
        for name in imports(path):
            assert not name.startswith(forbidden), f"{dotted(path)} imports {name}"


WEB_PACKAGES = (
    *("core", "masking", "graph", "history", "execution", "search"),
    *("machines", "people", "overview"),
)
"""The packages of console/web: each imports from itself and from the packages before it."""


def test_packages_of_the_pages_import_one_way() -> None:
    """A package imports no later package; urls.py and templatetags join the packages."""
    for path in modules("console/web"):
        package = path.relative_to(ROOT / "console/web").parts[0]
        if package not in WEB_PACKAGES:
            assert package in ("__init__.py", "urls.py", "templatetags"), f"{package}: in no order"
            continue
        after = WEB_PACKAGES[WEB_PACKAGES.index(package) + 1 :]
        later = {f"console.web.{other}" for other in after}
        names = {name for name in imports(path) if ".".join(name.split(".")[:3]) in later}
        assert not names, f"{dotted(path)} imports {sorted(names)}"


def test_pages_have_no_cycle_of_modules() -> None:
    """No module of console/web imports itself through others."""
    files = {dotted(path): path for path in modules("console/web")}
    needs = {name: imports(path) & set(files) - {name} for name, path in files.items()}
    while free := {name for name, others in needs.items() if not others & set(needs)}:
        needs = {name: others for name, others in needs.items() if name not in free}
    assert not needs, f"these import each other: {sorted(needs)}"


def test_only_the_store_writes_execution_tables() -> None:
    """No ``.save(``, ``.create(`` or SQL on execution tables outside console.store."""
    tables = ("Execution", "RunRow", "RunValue", "HistoryEvent", "InboxMessage", "Timer", "TaskRow")
    for path in modules("console"):
        place = str(path.relative_to(ROOT))
        if place.startswith(("console/store", "console/migrations")):
            continue
        text = path.read_text(encoding="utf-8")
        for table in tables:
            for verb in ("create(", "bulk_create(", "update_or_create("):
                assert f"{table}.objects.{verb}" not in text, f"{place} writes {table}"


# What names a column of payloads without showing to a reader what is in it.
READS_NO_PAYLOAD = {
    "console/web/search/scan.py": "leaves the columns out",
    "console/features/breakpoints/list_views.py": "leaves the columns out",
    "console/features/bulk/store.py": "starts an execution again with its input",
    "console/features/doctor/clients.py": "checks rows for the operator",
    "console/features/doctor/invariants.py": "checks rows for the operator",
    "console/features/doctor/stored_executions.py": "checks rows for the operator",
    "console/features/imports/views.py": "leaves the columns out",
    "console/features/insights/past_executions.py": "only how many iterations a Map has",
    "console/features/logs/lines.py": "writes rows that logs.read has masked",
    "console/features/metrics/cost.py": "only sizes",
    "console/features/metrics/family_cost.py": "only sizes",
    "console/features/metrics/near_limits.py": "only sizes",
    "console/features/metrics/token_cost.py": "only numbers of tokens",
    "console/features/metrics/web/chart_views.py": "leaves the columns out",
    "console/features/notifications/web/trigger_views.py": "answers a start link as the API does",
}
_READS = (
    (re.compile(r"\bHistoryEvent\b"), re.compile(r"\"details\"|\.details\b")),
    (re.compile(r"\bExecution\.(objects|imports)\b"), re.compile(r"[.\"](input|output|cause)\b")),
    (re.compile(r"\bTaskRow\b"), re.compile(r"row\.input\b")),
)


def test_pages_read_payloads_through_one_seam() -> None:
    """A page that reads payloads of events or executions masks what the project masks."""
    unmasked = set()
    for path in (*modules("console/web"), *modules("console/features")):
        text = path.read_text(encoding="utf-8")
        reads = any(table.search(text) and column.search(text) for table, column in _READS)
        if reads and not ("masked_execution" in text or ".shown(" in text):
            unmasked.add(str(path.relative_to(ROOT)))
    assert unmasked == {*READS_NO_PAYLOAD}


def test_loops_run_in_threads_of_their_own() -> None:
    """The browser's driver leaves an event loop in pytest's thread, where no other can run."""
    for path in modules("tests"):
        if path.name not in ("loops.py", "test_architecture.py"):
            assert "asyncio.run(" not in path.read_text(encoding="utf-8"), path


def test_scripts_are_waited_for_from_outside_the_page() -> None:
    """The driver's own wait looks again by ``eval``, which the pages' policy refuses."""
    for path in modules("tests"):
        if path.name != "test_architecture.py":
            assert ".wait_for_function(" not in path.read_text(encoding="utf-8"), path


def test_only_files_of_tests_mark_slow_ones() -> None:
    """The full tier imports no file without the mark, see ``tests.tiers.may_include``."""
    for path in modules("tests"):
        if not path.name.startswith("test_") and path.name != "tiers.py":
            assert "mark.slow" not in path.read_text(encoding="utf-8"), path


_DEPLOY = "console.features.deploy"
CLI_ORDER = (
    *("console.cli.documents", "console.cli.account", "console.cli.output"),
    *("console.cli.connection", "console.cli.commands"),
    *(f"{_DEPLOY}.machine_formats", f"{_DEPLOY}.executions", f"{_DEPLOY}.junit"),
    *(f"{_DEPLOY}.sources", f"{_DEPLOY}.parameters", f"{_DEPLOY}.placeholders"),
    *(f"{_DEPLOY}.intrinsic_functions", f"{_DEPLOY}.intrinsics", f"{_DEPLOY}.variables"),
    *(f"{_DEPLOY}.formats", f"{_DEPLOY}.discovery", f"{_DEPLOY}.lint_sources"),
    *(f"{_DEPLOY}.deployment", f"{_DEPLOY}.commands"),
)
"""Modules of client commands: each imports from itself and from the modules before it."""


@pytest.mark.parametrize(
    "path",
    [
        *modules("console/cli"),
        *(path for path in modules("console/features/deploy") if "management" not in path.parts),
    ],
    ids=dotted,
)
def test_commands_of_a_client_need_no_server_code(path: Path) -> None:
    """No Django, and of the console only what reads the data folder; modules import one way."""
    names = imports(path)
    assert not {name for name in names if name.split(".")[0] == "django"}
    others = {name for name in names if name.startswith("console.")}
    allowed = (
        "console.cli",
        "console.arns",
        "console.db.branch_names",
        "console.config.aws_rates",
        "console.config.client_profile",
        "console.config.data_folder",
        "console.config.yaml_loader",
        "console.errors",
        "console.feature.",
        "console.features.deploy",
        "console.recordings",
    )
    others -= {"console.config", "console.feature"}  # the packages of those modules
    assert not {name for name in others if not name.startswith(allowed)}
    own = [number for number, name in enumerate(CLI_ORDER) if dotted(path).startswith(name)]
    if own:
        later = CLI_ORDER[own[0] + 1 :]
        assert not {name for name in others if name.startswith(later)}


def test_headers_of_htmx_are_read_and_written_by_django_htmx() -> None:
    """``request.htmx`` and the helpers of ``django_htmx.http`` know the names of the headers."""
    for path in modules("console"):
        assert not re.search(r"\bHX[-_][A-Z]", path.read_text(encoding="utf-8")), path
