"""Pause and resume executions and schedules: shared code of ``pause``, ``resume``, ``status``."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from console.cli import branches
from console.cli.connection import connect
from console.cli.output import write_line

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from console.cli.connection import Connection

_SHOWN = 50


def add_subject_arguments(parser: ArgumentParser) -> None:
    """Add the subject: an execution, a state machine, or all schedules."""
    subject = parser.add_mutually_exclusive_group(required=True)
    subject.add_argument("execution", nargs="?", metavar="EXECUTION", help="ARN of an execution")
    subject.add_argument("--machine", metavar="NAME", help="all of a state machine")
    subject.add_argument("--schedules", action="store_true", help="all schedules of the project")
    parser.add_argument("--dry-run", action="store_true", help="show what would change")


def run_change(act: str, options: Namespace, more: dict[str, str]) -> int:
    """Pause or resume; return the exit code."""
    _change(connect(options), act, options, more)
    return 0


def run_status(options: Namespace) -> int:
    """Print paused subjects; return the exit code."""
    _write_status(connect(options), options.execution)
    return 0


def _call(
    connection: Connection, method: str, path: str, body: dict[str, str] | None = None
) -> dict[str, Any]:
    return branches.call(connection, method, path, body, needs="pauses")


def _change(connection: Connection, act: str, options: Namespace, more: dict[str, str]) -> None:
    """Pause or resume (``act``) the options' subject; raise CallRefused, ConnectionRefused."""
    more = more | {"dryRun": "true" if options.dry_run else "false"}
    outcome = f"would be {act}d" if options.dry_run else f"{act}d"
    if options.schedules:
        more.pop("timers", None)
        answer = _call(connection, "POST", f"/api/schedules/{act}", more)
        _write_schedules(answer, outcome, dry_run=options.dry_run)
    elif options.machine:
        arn = connection.machine_arn(options.machine)
        answer = _call(connection, "POST", f"/api/machines/{act}", {"machine": arn} | more)
        job = f" by bulk job {answer['job']}" if answer["job"] else ""
        plural = "" if answer["eligible"] == 1 else "s"
        write_line(
            f"{answer['eligible']} execution{plural} {outcome if not job else act + 'd'}{job}"
        )
        for reason, count in answer["excluded"].items():
            write_line(f"{count} excluded: {reason}")
    else:
        body = {"executionArn": options.execution} | more
        _call(connection, "POST", f"/api/executions/{act}", body)
        write_line(f"{options.execution}: {outcome}")


def _write_status(connection: Connection, execution: str | None) -> None:
    """Print the pauses of an execution or the project: since when and by whom."""
    query = f"?execution={quote(execution, safe='')}" if execution else ""
    answer = _call(connection, "GET", f"/api/executions/paused{query}")
    if execution:
        pause = answer["pause"]
        write_line(f"{execution}: {answer['status']}{_pause_words(pause) if pause else ''}")
        return
    schedules = _call(connection, "GET", "/api/schedules/paused")["pause"]
    words = _pause_words(schedules) if schedules else ", not paused"
    write_line(f"schedules{words}")
    rows = answer["executions"]
    write_line(f"{len(rows)}{'+' if answer['more'] else ''} paused executions")
    for row in rows[:_SHOWN]:
        write_line(f"  {row['executionArn']}{_pause_words(row['pause'])}")
    if len(rows) > _SHOWN:
        write_line(f"  {len(rows) - _SHOWN} more")


def _write_schedules(answer: dict[str, Any], outcome: str, *, dry_run: bool) -> None:
    if not dry_run:
        write_line(f"all schedules {outcome}")
        if answer.get("startedInWindows"):
            write_line(f"{answer['startedInWindows']} missed runs start within their windows")
        return
    write_line(f"{answer['total']} schedules {outcome}")
    for row in answer["schedules"]:
        write_line(f"  {row['arn']}  {row['expression']}  next {_moment(row['nextAt'])}")


def _pause_words(pause: dict[str, Any]) -> str:
    timers = f", timers {pause['timers']}" if "timers" in pause else ""
    note = f": {pause['note']}" if pause["note"] else ""
    by = pause["by"] or "the server"
    return f", paused since {_moment(pause['since'])} by {by}{timers}{note}"


def _moment(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC"
