"""``stateyard coverage``: reports which paths of state machines were executed, as a gate."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from console.cli.commands import FAILED, add_parameter_argument
from console.cli.connection import add_connection_arguments, connect
from console.cli.documents import SourceError
from console.cli.output import write_error, write_file, write_line
from console.features.coverage.measuring import WRITERS, Collection, Thresholds, make_reports
from console.features.coverage.measuring.report import shortfalls, with_suggestions
from console.features.coverage.sources import (
    PYPROJECT,
    CoverageSettings,
    add_result,
    add_server,
    check_percent,
    declare_files,
    is_result,
    read_settings,
)

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Sequence

    from console.features.coverage.measuring import CoverageReport

SUMMARY = "report which states, rules and error paths were executed; exit code 1 below a threshold"
_LAST = 100


def add_arguments(parser: ArgumentParser) -> None:
    """Take sources, the format and thresholds."""
    parser.add_argument(
        "sources",
        nargs="*",
        metavar="PATH|NAME",
        help="definitions, results of pytest, histories, scenarios; or state machines of a server",
    )
    parser.add_argument("--format", choices=WRITERS, default="text")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the report to a file")
    parser.add_argument(
        "--fail-under", type=float, metavar="PERCENT", help="exit code 1 if the total is below"
    )
    parser.add_argument(
        "--config", type=Path, metavar="FILE", help="a TOML file (default: pyproject.toml)"
    )
    parser.add_argument(
        "--last", type=int, metavar="N", help="executions of a server (default: 100)"
    )
    parser.add_argument("--save", type=Path, metavar="FILE", help="write the sum as a result file")
    add_parameter_argument(parser)
    add_connection_arguments(parser)


def run_command(options: Namespace) -> int:
    """Write the report; return 1 below a threshold."""
    settings = _settings(options.config)
    thresholds = settings.thresholds
    if options.fail_under is not None:
        total = check_percent(options.fail_under, "--fail-under")
        thresholds = Thresholds(total, thresholds.machines)
    collection = _collect(options, settings.machines)
    reports = make_reports(collection.resolve(), thresholds)
    _check_names(reports, thresholds)
    shown = [_with_text(report) for report in reports]
    if options.format != "cobertura":  # it has no place for them
        shown = [with_suggestions(report) for report in shown]
    text = WRITERS[options.format](shown)
    if options.output is None:
        write_line(text)
    else:
        write_file(options.output, text)
    if options.save is not None:
        write_file(options.save, collection.write_text())
    if runs := collection.unmatched():
        write_error(f"warning: executions of a definition that no named state machine has: {runs}")
    problems = shortfalls(reports, thresholds)
    for problem in problems:
        write_error(problem)
    return FAILED if problems else 0


def _settings(config: Path | None) -> CoverageSettings:
    if config is None and not Path(PYPROJECT).is_file():
        return CoverageSettings()
    return read_settings(config or Path(PYPROJECT), required=config is not None)


def _collect(options: Namespace, configured: Sequence[Path]) -> Collection:
    if options.last is not None and options.last < 1:
        raise SourceError(f"--last: got {options.last}, wanted 1 or more")
    paths = [Path(source) for source in options.sources if Path(source).exists()]
    names = [source for source in options.sources if not Path(source).exists()]
    results = [path for path in paths if is_result(path)]
    definitions = [path for path in paths if path not in results]
    if options.last is not None and not names:
        raise SourceError("--last: got no state machine of a server, wanted its name or ARN")
    if options.param and not (definitions or configured):
        raise SourceError("--param: got no definition, wanted a file with the parameter")
    collection = Collection()
    declare_files(collection, definitions or configured, options.param)
    _add_servers(collection, names, options)
    for path in results:
        add_result(collection, path)
    if not collection.machines:
        raise SourceError("got no state machine, wanted a definition, results or a name")
    return collection


def _add_servers(collection: Collection, names: Sequence[str], options: Namespace) -> None:
    if not names:
        return
    connection = connect(options)
    for name in names:
        arn = connection.machine_arn(name)
        names_of_files = {machine.name for machine in collection.machines}
        declare = arn.rpartition(":")[2] not in names_of_files
        add_server(collection, connection.states, arn, options.last or _LAST, declare=declare)


def _check_names(reports: Sequence[CoverageReport], thresholds: Thresholds) -> None:
    """Refuse a threshold of a machine that is not there: it would never fail."""
    names = {report.machine for report in reports}
    for name in thresholds.machines:
        if name not in names:
            raise SourceError(
                f"thresholds.{name}: got a state machine that is not in the report, wanted one of "
                f"{', '.join(sorted(names))}"
            )


def _with_text(report: CoverageReport) -> CoverageReport:
    """Return a report with the content of its file, for the lines of states."""
    path = Path(report.place)
    if not report.place or not path.is_file():
        return report
    return replace(report, text=path.read_text(encoding="utf-8", errors="replace"))
