"""The option ``--stateyard-coverage`` of pytest: record a session, and report its coverage."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from console.features.coverage.recorder import CoverageRecorder
    from console.testing.server import StateyardServer

_RECORDER: pytest.StashKey[CoverageRecorder] = pytest.StashKey()
_FROM_WORKER = "stateyard_coverage"


class CoveragePlugin:
    """Hooks of pytest; nothing is recorded without the option."""

    def pytest_addoption(self, parser: pytest.Parser) -> None:
        """Add ``--stateyard-coverage``."""
        parser.getgroup("stateyard").addoption(
            "--stateyard-coverage",
            nargs="?",
            const="",
            metavar="FILE",
            help="report which paths of state machines the tests execute; FILE: write the results",
        )

    @pytest.hookimpl(tryfirst=True)
    def pytest_load_initial_conftests(self, early_config: pytest.Config) -> None:
        """Begin to record before a conftest imports functions of the engine."""
        file = early_config.known_args_namespace.stateyard_coverage
        if file is None:
            return
        if file and not file.endswith(".json"):  # a path of tests after the option: no overwriting
            raise pytest.UsageError(
                f"--stateyard-coverage: got {file!r}, wanted --stateyard-coverage=FILE.json, "
                "or the option behind the paths of tests"
            )
        from console.features.coverage.recorder import CoverageRecorder

        early_config.stash[_RECORDER] = CoverageRecorder()
        early_config.stash[_RECORDER].begin()

    def pytest_unconfigure(self, config: pytest.Config) -> None:
        """Restore the engine's functions."""
        if _RECORDER in config.stash:
            config.stash[_RECORDER].end()

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        """Add the results of a pytest-xdist worker."""
        del error
        text = getattr(node, "workeroutput", {}).get(_FROM_WORKER)
        if text and _RECORDER in node.config.stash:
            node.config.stash[_RECORDER].collection.read_document(json.loads(text), "pytest-xdist")

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
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

    def pytest_terminal_summary(self, terminalreporter: Any, config: pytest.Config) -> None:
        """Print the report."""
        if _RECORDER not in config.stash:
            return
        text, problems = _report(config)
        terminalreporter.section("coverage of state machines")
        terminalreporter.write_line(text)
        for problem in problems:
            terminalreporter.write_line(f"FAIL {problem}", red=True)

    def pytest_stateyard_stopping(self, server: StateyardServer, config: pytest.Config) -> None:
        """Add the executions of the session's server."""
        if _RECORDER in config.stash:
            config.stash[_RECORDER].add_server(server)


def _report(config: pytest.Config) -> tuple[str, list[str]]:
    """Return the report as text, and the thresholds that are not reached."""
    import engine
    from console.cli.documents import SourceError
    from console.features.coverage.measuring import WRITERS, CoverageFileError
    from console.features.coverage.sources import PYPROJECT, CoverageSettings, read_settings

    path = config.rootpath / PYPROJECT
    try:
        settings = read_settings(path, required=False) if path.exists() else CoverageSettings()
        reports, problems = config.stash[_RECORDER].report(settings)
    except (SourceError, CoverageFileError, engine.DefinitionError) as error:
        return "", [str(error)]
    return WRITERS["text"](reports), problems
