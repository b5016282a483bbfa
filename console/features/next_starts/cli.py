"""``stateyard next_starts``: set, list and remove breakpoints and faults for the next starts."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from console.cli import breakpoints, faults
from console.cli.branches import call
from console.cli.connection import add_connection_arguments, connect
from console.cli.documents import SourceError
from console.cli.output import write_line

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from console.cli.connection import Connection

SUMMARY = "set breakpoints and faults for the next starts of a state machine, or list them"
_PATH = "/api/next-starts"
_NEEDS = "next starts"


def add_arguments(parser: ArgumentParser) -> None:
    """Add the state machine, and what its next starts get."""
    parser.add_argument(
        "machine", nargs="?", metavar="NAME", help="name or ARN; without one, all are listed"
    )
    breakpoints.add_breakpoint_arguments(parser, parser)
    faults.add_fault_argument(parser)
    parser.add_argument("--starts", type=int, metavar="N", help="1 to 100 starts (default: 1)")
    parser.add_argument("--hours", type=int, metavar="N", help="for 1 to 168 hours (default: 24)")
    parser.add_argument("--remove", action="store_true", help="remove them for everybody")
    add_connection_arguments(parser)


def run_command(options: Namespace) -> int:
    """Set, list or remove."""
    problem = _problem(options)
    if problem:
        raise SourceError(problem)
    _run_subcommand(connect(options), options)
    return 0


def _problem(options: Namespace) -> str:
    """Return why the options do not fit together, "" if they do."""
    sets = bool(options.break_at or options.fault is not None)
    numbers = options.starts is not None or options.hours is not None
    if (sets or options.remove) and options.machine is None:
        return "NAME: got none, expected the state machine"
    if options.remove and (sets or numbers):
        return "--remove: got further options, expected it alone"
    if numbers and not sets:
        return (
            "--starts and --hours: got no breakpoints and no faults, expected --break-at or --fault"
        )
    return ""


def _run_subcommand(connection: Connection, options: Namespace) -> None:
    if options.machine is None:
        _list(connection, "")
        return
    arn = connection.machine_arn(options.machine)
    if options.remove:
        removed = call(connection, "POST", f"{_PATH}/remove", {"machine": arn}, needs=_NEEDS)
        write_line(f"removed: {_words(removed)}")
    elif options.break_at or options.fault is not None:
        write_line(_words(_set_next_starts(connection, arn, options)))
    else:
        _list(connection, f"?machine={quote(arn, safe='')}")


def _set_next_starts(connection: Connection, arn: str, options: Namespace) -> dict[str, Any]:
    body = {"machine": arn}
    for name in ("starts", "hours"):
        if getattr(options, name) is not None:
            body[name] = str(getattr(options, name))
    if options.break_at:
        body["breakpoints"] = breakpoints.breakpoints_text(connection, arn, options.break_at)
    if options.fault is None:
        return call(connection, "POST", _PATH, body, needs=_NEEDS)
    path = Path(options.fault)
    body["faults"] = faults.faults_text(path)
    return faults.call_with_faults(connection, path, _PATH, body, _NEEDS)


def _list(connection: Connection, query: str) -> None:
    rows = call(connection, "GET", f"{_PATH}{query}", needs=_NEEDS)["nextStarts"]
    if not rows:
        write_line("no breakpoints and no faults for the next starts")
    for row in rows:
        write_line(_words(row))


def _words(row: dict[str, Any]) -> str:
    """Return what the next starts of a machine get, with an indented line for each."""
    until = datetime.fromtimestamp(row["until"], UTC)
    name = row["stateMachineArn"].rpartition(":")[2]
    taken = f"{row['taken']} of {row['starts']} starts taken"
    lines = [f"{name}: {taken}, until {until:%Y-%m-%d %H:%M} UTC, set by {row['by']}"]
    lines += [f"  {words}" for words in (*row["breakpoints"], *row["faults"])]
    if row["problem"]:
        lines.append(f"  starts take no place at the moment: {row['problem']}")
    return "\n".join(lines)
