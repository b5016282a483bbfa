"""Build the context object, which expressions read as ``$$`` or ``$states.context``."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from engine.runtime.run import GroupKind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.data.expression import Json
    from engine.runtime.run import Frame
    from engine.runtime.turn import Turn


def iso_text(ms: int) -> str:
    """Format epoch milliseconds as AWS does.

    ISO 8601, UTC, ``Z``, fraction of 0 or 3 digits.
    """
    moment = datetime.fromtimestamp(ms // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{moment}.{ms % 1000:03d}Z" if ms % 1000 else f"{moment}Z"


def context_object(turn: Turn, frame: Frame, token: str | None = None) -> dict[str, Json]:
    """Return the context object for ``frame``; source: "Accessing execution data".

    ``token``: the task token, given for the arguments of ``.waitForTaskToken`` and ``.sync`` tasks.
    """
    about = turn.about
    if "context" in about:  # TestState's caller may pass a whole context object of its own
        return {**about["context"]}
    context: dict[str, Any] = {
        "Execution": _execution_part(turn),
        "StateMachine": {"Id": about["state_machine_arn"], "Name": about["state_machine_name"]},
        "State": _state_part(turn, frame),
    }
    if frame.group and (item := _innermost_item(turn, frame)) is not None:
        context["Map"] = {"Item": item}
    elif "map_item" in about:  # TestState of a state inside a Map
        context["Map"] = {"Item": about["map_item"]}
    if token is not None:
        context["Task"] = {"Token": token}
    return context


def _execution_part(turn: Turn) -> dict[str, Json]:
    """Return the part common to all states of a turn; building it parses the input."""
    about = turn.about
    if turn.execution_context is None or turn.execution_context[0] is not about:
        turn.execution_context = (about, _describe_execution(about))
    return turn.execution_context[1]


def _describe_execution(about: Mapping[str, Any]) -> dict[str, Json]:
    execution: dict[str, Json] = {
        "Id": about["execution_arn"],
        "Input": json.loads(about["input"]),
        "StartTime": iso_text(about["start_ms"]),
        "Name": about["execution_name"],
        "RoleArn": about["role_arn"],
    }
    if about.get("redrive_count_known", True):  # StartSyncExecution's context has no RedriveCount
        execution["RedriveCount"] = about.get("redrive_count", 0)
    if about.get("redrive_ms"):
        execution["RedriveTime"] = iso_text(about["redrive_ms"])
    return execution


def _state_part(turn: Turn, frame: Frame) -> dict[str, Any]:
    state: dict[str, Any] = {"Name": frame.state, "EnteredTime": iso_text(frame.entered_ms)}
    if hasattr(turn.state(frame), "recovery"):  # only a state that may have a Retry has a count
        state["RetryCount"] = frame.retry_count
    return state


def _innermost_item(turn: Turn, frame: Frame) -> dict[str, Any] | None:
    """Return index and value of the innermost Map iteration around the frame."""
    group = turn.groups[frame.group]
    if group.kind is GroupKind.MAP:
        return {"Index": frame.index, "Value": turn.item(group, frame.index)}
    owner = turn.frames[group.owner]
    return _innermost_item(turn, owner) if owner.group else None
