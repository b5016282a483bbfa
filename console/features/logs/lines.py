"""Choose the events included in a log level (ALL, ERROR, FATAL), and format their log lines."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import engine
from console.store.state import history

if TYPE_CHECKING:
    from console.models import HistoryEvent

_BAD_STAGES = (engine.Stage.FAILED, engine.Stage.TIMED_OUT, engine.Stage.ABORTED)
FATAL = engine.event_names(frozenset({engine.Family.EXECUTION}), *_BAD_STAGES)
ERROR = engine.event_names(frozenset(engine.Family), *_BAD_STAGES) | {"FailStateEntered"}
_LONGEST = 248 * 1024
_PAYLOADS = ("input", "output", "parameters")


def logged_event_types(level: str) -> frozenset[str]:
    """Return the event types of a log level, by the table in AWS's guide."""
    return {"ALL": frozenset(engine.DETAILS), "ERROR": ERROR, "FATAL": FATAL}.get(
        level, frozenset()
    )


def log_line(row: HistoryEvent, execution_arn: str, redrives: int, *, with_data: bool) -> str:
    """Return the log line of an event: JSON, where every number is a text, as AWS writes it.

    ``redrives``: how often the execution had been redriven when it happened.
    """
    event = history.aws_event(row, include_data=with_data)
    member = engine.DETAILS[row.type]
    answer = {
        "id": str(row.event_id),
        "type": row.type,
        "details": _truncate_payloads(event[member]) if member else {},
        "redrive_count": str(redrives),
        "previous_event_id": str(row.previous),
        "event_timestamp": str(row.at_ms),
        "execution_arn": execution_arn,
    }
    return json.dumps(answer, ensure_ascii=False, separators=(",", ":"))


def _truncate_payloads(details: dict[str, Any]) -> dict[str, Any]:
    """Truncate payloads to AWS's 248 KB per line, with a note."""
    for name in _PAYLOADS:
        text = details.get(name)
        if isinstance(text, str) and len(text.encode()) > _LONGEST:
            details[name] = text.encode()[:_LONGEST].decode(errors="ignore")
            if f"{name}Details" in details:
                details[f"{name}Details"] = {"truncated": True}
    return details
