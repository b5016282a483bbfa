"""Read executions from a server or AWS, and save them as printed by the AWS CLI."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from console.recordings.printed import read_printed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from console.recordings.printed import Printed

    _Bound = Callable[[Iterable[dict[str, Any]]], Iterator[dict[str, Any]]]

_STARTED = ("TaskSubmitted", "TaskSucceeded")
_UNSUCCESSFUL = ("FAILED", "TIMED_OUT", "ABORTED")


@dataclass(frozen=True, slots=True)
class ReadExecution:
    """The API's answers about one execution.

    ``machine``: of DescribeStateMachineForExecution.
    """

    description: dict[str, Any]
    events: list[dict[str, Any]]
    machine: dict[str, Any]

    @property
    def place(self) -> str:
        """Return the relative path of its files, without endings: ``MACHINE/NAME``."""
        machine = self.description["stateMachineArn"].rpartition(":")[2]
        return f"{safe_name(machine)}/{safe_name(self.description['name'])}"

    @property
    def printed(self) -> Printed:
        """Return it parsed; raise ``ValidationException`` for an incomplete history."""
        return read_printed(
            as_json({"events": self.events}), as_json(self.machine), as_json(self.description)
        )

    @property
    def map_runs(self) -> list[str]:
        """Return the ARNs of its Map Runs."""
        details = (event.get("mapRunStartedEventDetails") for event in self.events)
        return list(dict.fromkeys(each["mapRunArn"] for each in details if each))

    @property
    def children(self) -> list[str]:
        """Return the ARNs of the executions started by its Tasks."""
        arns = (_started_arn(event) for event in self.events if event["type"] in _STARTED)
        return list(dict.fromkeys(arn for arn in arns if arn))

    def save(self, folder: Path) -> Path:
        """Write its three files; return the history's."""
        path = folder / f"{self.place}.history.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        stem = folder / self.place
        write_json(path, {"events": self.events})
        write_json(stem.with_name(f"{stem.name}.machine.json"), self.machine)
        write_json(stem.with_name(f"{stem.name}.execution.json"), self.description)
        return path


def read_execution(states: Any, arn: str, bound: _Bound = iter) -> ReadExecution:
    """Read an execution with its whole history. ``states``: the client of Step Functions.

    ``bound``: a generator that yields the pages it gets, and raises an error if they are too many.
    """
    description = plain_answer(states.describe_execution(executionArn=arn))
    events = list_events(states, arn, bound)
    machine = plain_answer(states.describe_state_machine_for_execution(executionArn=arn))
    return ReadExecution(description, events, machine)


def list_events(states: Any, arn: str, bound: _Bound = iter) -> list[dict[str, Any]]:
    """Return the whole history of an execution, with the events as boto3 returns them."""
    pages = states.get_paginator("get_execution_history").paginate(
        executionArn=arn, PaginationConfig={"PageSize": 1_000}
    )
    return [event for page in bound(pages) for event in page["events"]]


def arn_problem(arn: str) -> str:
    """Return why an ARN cannot be that of an execution with a history, "" if it can."""
    parts = arn.split(":")
    kind = parts[5] if len(parts) > 7 else ""  # noqa: PLR2004 - arn:...:execution:machine:name
    if kind == "express":
        return "got an Express execution, whose history AWS does not keep, wanted a Standard one"
    return "" if kind == "execution" else "got no ARN of an execution"


def list_items(states: Any, map_run: str, most: int) -> Iterator[str]:
    """Yield the ARNs of a Map Run's child executions, unsuccessful ones first.

    ``most``: the maximum number.
    """
    remaining = most
    for status in (*_UNSUCCESSFUL, "RUNNING", "SUCCEEDED"):
        pages = states.get_paginator("list_executions").paginate(
            mapRunArn=map_run, statusFilter=status
        )
        for page in pages if remaining else ():
            for row in page["executions"][:remaining]:
                remaining -= 1
                yield row["executionArn"]
            if not remaining:
                return


def plain_answer(answer: dict[str, Any]) -> dict[str, Any]:
    """Return an answer without ResponseMetadata."""
    return {key: value for key, value in answer.items() if key != "ResponseMetadata"}


def as_json(value: Any) -> str:
    """Return JSON as printed by the AWS CLI."""
    return json.dumps(value, indent=2, ensure_ascii=False, default=_as_iso)


def write_json(path: Path, value: Any) -> None:
    """Write a JSON file."""
    path.write_text(as_json(value) + "\n", encoding="utf-8")


def safe_name(name: str) -> str:
    """Return a safe file name, which stays in its folder whatever the server sends."""
    return re.sub(r"[^\w.-]", "_", name).lstrip(".") or "_"


def _started_arn(event: dict[str, Any]) -> str:
    """Return the ARN of the execution that a Task started, "" for other events."""
    details = event.get("taskSubmittedEventDetails") or event.get("taskSucceededEventDetails") or {}
    starts = str(details.get("resource", "")).startswith("startExecution")
    try:
        output = json.loads(details.get("output", "")) if starts else None
    except (ValueError, RecursionError):  # cut, or hidden from the reader
        return ""
    if not isinstance(output, dict):
        return ""
    return str(output.get("ExecutionArn") or output.get("executionArn") or "")


def _as_iso(value: Any) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)
