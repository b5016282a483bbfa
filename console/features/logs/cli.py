"""``stateyard logs``: print the events of executions and the output of their functions as lines."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from console.cli.connection import add_connection_arguments, connect
from console.cli.output import write_line

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from console.cli.connection import Connection

SUMMARY = "show the events of executions, and what their functions print"
_LOOK_S = 0.5
_STILL_S = 1.0
"""The delay with which the output of a function is stored after its call."""
_RUNNING = ("RUNNING", "PENDING_REDRIVE")
_NEWEST = 20
_LISTED = 100
"""The number of executions listed to find the latest starts."""


def add_arguments(parser: ArgumentParser) -> None:
    """Add the state machine or execution, and ``--follow``."""
    parser.add_argument("name", metavar="NAME|ARN", help="a state machine, or an execution's ARN")
    parser.add_argument("--follow", "-f", action="store_true", help="until it ends, or Ctrl-C")
    parser.add_argument(
        "--last", type=int, default=1, metavar="N", help="of a state machine (default: 1)"
    )
    add_connection_arguments(parser)


def run_command(options: Namespace) -> int:
    """Print the log."""
    try:
        connection = connect(options)
        if ":execution:" in options.name:
            _show_one(connection, options.name, follow=options.follow)
        else:
            _show_machine(connection, options)
    except KeyboardInterrupt:
        return 0
    return 0


def _show_one(connection: Connection, arn: str, *, follow: bool) -> None:
    reader = ExecutionLog(connection, arn)
    while True:
        ended = reader.status() not in _RUNNING
        reader.show()
        if ended or not follow:
            break
        time.sleep(_LOOK_S)
    if reader.is_recent():
        time.sleep(_STILL_S)
        reader.show()


def _show_machine(connection: Connection, options: Namespace) -> None:
    arn = connection.machine_arn(options.name)
    readers: dict[str, ExecutionLog] = {}
    newest = max(1, options.last)
    while True:
        # The list is also sorted by end and redrive: an execution that began long ago may be first.
        most = min(max(newest, _LISTED), 1000)
        page = connection.states.list_executions(stateMachineArn=arn, maxResults=most)
        by_start = sorted(page["executions"], key=lambda each: each["startDate"])
        for execution in by_start[-newest:]:
            execution_arn = execution["executionArn"]
            readers.setdefault(execution_arn, ExecutionLog(connection, execution_arn))
        for reader in list(readers.values()):
            reader.show()
        if not options.follow:
            break
        newest = max(newest, _NEWEST)
        time.sleep(_LOOK_S)
    if any(reader.is_recent() for reader in readers.values()):
        time.sleep(_STILL_S)
        for reader in readers.values():
            reader.show()


@dataclass(slots=True)
class ExecutionLog:
    """Reads the log of an execution; remembers the printed lines."""

    connection: Connection
    arn: str
    last: int = 0
    stream: str = ""
    functions: set[str] = field(default_factory=set)
    seen: set[str] = field(default_factory=set)
    moved: float = 0.0

    def status(self) -> str:
        """Return its status."""
        execution = self.connection.states.describe_execution(executionArn=self.arn)
        return str(execution["status"])

    def is_recent(self) -> bool:
        """Whether output of its functions may still arrive."""
        return bool(self.functions) and time.time() - self.moved < _STILL_S * 5

    def show(self) -> None:
        """Print the new lines in order of time."""
        lines = [*self._events(), *self._printed()]
        name = self.arn.rpartition(":")[2]
        for at_ms, text in sorted(lines, key=lambda line: line[0]):
            moment = datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")
            write_line(f"{moment[:-3]}Z  {name}  {text}")

    def _events(self) -> list[tuple[float, str]]:
        request: dict[str, Any] = {"executionArn": self.arn, "reverseOrder": True}
        fresh: list[dict[str, Any]] = []
        while True:
            page = self.connection.states.get_execution_history(**request)
            fresh += [event for event in page["events"] if event["id"] > self.last]
            if "nextToken" not in page or page["events"][-1]["id"] <= self.last + 1:
                break
            request["nextToken"] = page["nextToken"]
        fresh.reverse()
        for event in fresh:
            self.last = max(self.last, event["id"])
            self.functions |= _functions_of(event)
            self.moved = max(self.moved, event["timestamp"].timestamp())
            if event["id"] == 1:
                self._set_stream(event["timestamp"])
        return [(event["timestamp"].timestamp() * 1000, _event_line(event)) for event in fresh]

    def _set_stream(self, started: datetime) -> None:
        parts = self.arn.split(":")
        self.stream = f"{started.astimezone(UTC):%Y/%m/%d}/[$LATEST]{parts[6]}/{parts[7]}"

    def _printed(self) -> list[tuple[float, str]]:
        lines = []
        for function in sorted(self.functions):
            for event in self._log_events(function):
                if event["eventId"] not in self.seen:
                    self.seen.add(event["eventId"])
                    lines.append((event["timestamp"], f"{function}  {event['message']}"))
        return lines

    def _log_events(self, function: str) -> list[dict[str, Any]]:
        """Return the functions' output for this execution; empty without a log."""
        request: dict[str, Any] = {
            "logGroupName": f"/aws/lambda/{function}",
            "logStreamNames": [self.stream],
        }
        events: list[dict[str, Any]] = []
        logs = self.connection.client("logs")
        while True:
            try:
                page = logs.filter_log_events(**request)
            except logs.exceptions.ResourceNotFoundException:
                return events
            events += page["events"]
            if "nextToken" not in page:
                return events
            request["nextToken"] = page["nextToken"]


def _functions_of(event: dict[str, Any]) -> set[str]:
    """Return the name of the function that an event may call."""
    for key in ("lambdaFunctionScheduledEventDetails", "activityScheduledEventDetails"):
        if key in event:
            arn = event[key].get("resource", "").split(":")
            return {arn[6]} if len(arn) > 6 else set()  # noqa: PLR2004 - the name in an ARN
    details = event.get("taskScheduledEventDetails", {})
    if details.get("resourceType") != "lambda":
        return set()
    try:
        name_or_arn = json.loads(details.get("parameters", "{}")).get("FunctionName", "")
    except (ValueError, AttributeError):
        return set()
    parts = str(name_or_arn).split(":")
    name = parts[6] if name_or_arn.startswith("arn:") and len(parts) > 6 else parts[0]  # noqa: PLR2004
    return {name} if name else set()


def _event_line(event: dict[str, Any]) -> str:
    """Return type, state and error of an event as a line."""
    parts = [event["type"]]
    for details in event.values():
        if isinstance(details, dict):
            parts += [str(details[key]) for key in ("name", "error") if details.get(key)]
            cause = str(details.get("cause") or "")
            parts += [cause.splitlines()[0][:300]] if cause.strip() else []
    return "  ".join(parts)
