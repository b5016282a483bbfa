"""The pytest plugin: fixtures for tests with a Stateyard server, and coverage of state machines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from console.testing.coverage_recorder import CoverageRecorder
    from console.testing.server import StateyardServer

_RECORDER: pytest.StashKey[CoverageRecorder] = pytest.StashKey()
_FROM_WORKER = "stateyard_coverage"


@pytest.fixture(scope="session")
def stateyard_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The server's data folder. Override it to add ``targets.json`` or other files."""
    return tmp_path_factory.mktemp("stateyard")


@pytest.fixture(scope="session")
def stateyard(stateyard_data: Path, pytestconfig: pytest.Config) -> Iterator[StateyardServer]:
    """A server on a free port for a test session (with pytest-xdist, for a worker)."""
    from console.testing.server import StateyardServer

    server = StateyardServer(stateyard_data)
    server.start()
    yield server
    try:
        if _RECORDER in pytestconfig.stash:
            pytestconfig.stash[_RECORDER].add_server(server)
    finally:
        server.stop()


# -- coverage --------------------------------------------------------------------------------------


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--stateyard-coverage``."""
    parser.getgroup("stateyard").addoption(
        "--stateyard-coverage",
        nargs="?",
        const="",
        metavar="FILE",
        help="report which paths of state machines the tests execute; FILE: write the results",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Begin to record before a conftest imports functions of the engine."""
    file = early_config.known_args_namespace.stateyard_coverage
    if file is None:
        return
    if file and not file.endswith(".json"):  # a path of tests after the option: no overwriting
        raise pytest.UsageError(
            f"--stateyard-coverage: got {file!r}, wanted --stateyard-coverage=FILE.json, "
            "or the option behind the paths of tests"
        )
    from console.testing.coverage_recorder import CoverageRecorder

    early_config.stash[_RECORDER] = CoverageRecorder()
    early_config.stash[_RECORDER].begin()


def pytest_unconfigure(config: pytest.Config) -> None:
    """Restore the engine's functions."""
    if _RECORDER in config.stash:
        config.stash[_RECORDER].end()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """Add the results of a pytest-xdist worker."""
    del error
    text = getattr(node, "workeroutput", {}).get(_FROM_WORKER)
    if text and _RECORDER in node.config.stash:
        node.config.stash[_RECORDER].collection.read_document(json.loads(text), "pytest-xdist")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the results; fail the session below a threshold."""
    config = session.config
    if _RECORDER not in config.stash:
        return
    recorder = config.stash[_RECORDER]
    if hasattr(config, "workeroutput"):
        config.workeroutput[_FROM_WORKER] = recorder.collection.write_text()
        return
    if file := config.getoption("stateyard_coverage"):
        from console.cli.output import write_file

        write_file(Path(file), recorder.collection.write_text())
    if session.exitstatus == pytest.ExitCode.OK and _report(config)[1]:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print the report."""
    if _RECORDER not in config.stash:
        return
    text, problems = _report(config)
    terminalreporter.section("coverage of state machines")
    terminalreporter.write_line(text)
    for problem in problems:
        terminalreporter.write_line(f"FAIL {problem}", red=True)


def _report(config: pytest.Config) -> tuple[str, list[str]]:
    """Return the report as text, and the thresholds that are not reached."""
    import engine
    from console.cli.coverage_sources import PYPROJECT, CoverageSettings, read_settings
    from console.cli.documents import SourceError
    from console.coverage import WRITERS, CoverageFileError

    path = config.rootpath / PYPROJECT
    try:
        settings = read_settings(path, required=False) if path.exists() else CoverageSettings()
        reports, problems = config.stash[_RECORDER].report(settings)
    except (SourceError, CoverageFileError, engine.DefinitionError) as error:
        return "", [str(error)]
    return WRITERS["text"](reports), problems
