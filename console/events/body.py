"""Build the bodies of events: EventBridge's envelope, and the details of Step Functions.

Source: "Automating Step Functions event delivery with EventBridge" of the Developer Guide.
"""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from console.db import clock

if TYPE_CHECKING:
    from collections.abc import Sequence

SOURCE = "aws.states"
DETAIL_TYPE = "Step Functions Execution Status Change"
ALARM_SOURCE = "aws.cloudwatch"
ALARM_DETAIL_TYPE = "CloudWatch Alarm State Change"
MOST_BYTES = 248 * 1024
"""The maximum size of escaped input and output together; above it the input is left out."""

_IDS = uuid.UUID("5b0c6d7e-8a3f-4f61-9d2c-1e7a40b95c33")


@dataclass(frozen=True, slots=True)
class StatusChange:
    """The status of an execution at the moment of a change, for the event."""

    execution_arn: str
    state_machine_arn: str
    name: str
    status: str
    start_ms: int
    stop_ms: int | None
    input: str
    output: str | None
    error: str | None
    cause: str | None
    version_arn: str = ""
    alias_arn: str = ""
    redrive_count: int = 0
    redrive_ms: int | None = None
    child_of_map: bool = False

    @property
    def event_id(self) -> str:
        """Return the id of the event: the same for every delivery of this change."""
        return stable_id(self.execution_arn, self.start_ms, self.redrive_count, self.status)

    @property
    def at_ms(self) -> int:
        """Return the time of the status change in epoch milliseconds."""
        return self.stop_ms or self.redrive_ms or self.start_ms


def stable_id(*parts: object) -> str:
    """Return an event id derived from its parts."""
    return str(uuid.uuid5(_IDS, " ".join(map(str, parts))))


def time_text(at_ms: int) -> str:
    """Return a moment as CloudWatch writes it in its events: ``2026-01-02T03:04:05.678+0000``."""
    moment = clock.moment_of(at_ms).replace(tzinfo=None)
    return f"{moment.isoformat(timespec='milliseconds')}+0000"


def event_text(
    event_id: str,
    account: str,
    region: str,
    *,
    source: str,
    detail_type: str,
    at_ms: int,
    resources: Sequence[str],
    detail: Any,
    injected_by: str = "",
) -> str:
    """Return an event as JSON; an event put by a person in AWS's name is marked as such."""
    event: dict[str, Any] = {
        "version": "0",
        "id": event_id,
        "detail-type": detail_type,
        "source": source,
        "account": account,
        "time": clock.moment_of(at_ms).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "region": region,
        "resources": list(resources),
        "detail": detail,
    }
    if injected_by:
        event["stateyard"] = {"injectedBy": injected_by}
    return json.dumps(event, ensure_ascii=False, separators=(",", ":"))


def status_change_event(change: StatusChange) -> str:
    """Return the event "Step Functions Execution Status Change"."""
    _, _, _, region, account, _ = change.execution_arn.split(":", 5)
    return event_text(
        change.event_id,
        account,
        region,
        source=SOURCE,
        detail_type=DETAIL_TYPE,
        at_ms=change.at_ms,
        resources=[change.execution_arn],
        detail=_detail(change),
    )


def _detail(change: StatusChange) -> dict[str, Any]:
    with_input, with_output = _included(change)
    redrivable, reason = _redrive(change)
    timed_out = change.status == "TIMED_OUT"
    return {
        "executionArn": change.execution_arn,
        "stateMachineArn": change.state_machine_arn,
        "name": change.name,
        "status": change.status,
        "startDate": change.start_ms,
        "stopDate": change.stop_ms,
        "input": change.input if with_input else None,
        "output": change.output if with_output else None,
        "stateMachineVersionArn": change.version_arn or None,
        "stateMachineAliasArn": change.alias_arn or None,
        "redriveCount": change.redrive_count,
        "redriveDate": change.redrive_ms,
        "redriveStatus": redrivable,
        "redriveStatusReason": reason,
        "inputDetails": {"included": with_input},
        "outputDetails": None if change.output is None else {"included": with_output},
        "error": change.error or ("States.Timeout" if timed_out else None),
        "cause": change.cause,
    }


def _included(change: StatusChange) -> tuple[bool, bool]:
    """Whether input and output are short enough for the event."""
    output = 0 if change.output is None else _escaped(change.output)
    with_output = output <= MOST_BYTES
    return _escaped(change.input) + output <= MOST_BYTES, with_output


def _escaped(text: str) -> int:
    return len(json.dumps(text, ensure_ascii=False).encode("utf-8", "surrogatepass")) - 2


def _redrive(change: StatusChange) -> tuple[str, str]:
    status = change.status
    if status == "RUNNING" and change.redrive_count:
        return "REDRIVE_IN_PROGRESS", "Execution is RUNNING and cannot be redriven"
    if status in ("RUNNING", "SUCCEEDED"):
        return "NOT_REDRIVABLE", f"Execution is {status} and cannot be redriven"
    if change.child_of_map:
        return "NOT_REDRIVABLE", f"Execution is {status} and is redriven by its Map Run"
    if change.execution_arn.split(":", 6)[5] == "express":
        reason = "Execution belongs to an Express state machine and cannot be redriven"
        return "NOT_REDRIVABLE", reason
    return "REDRIVABLE", f"Execution is {status} and is redrivable"
