"""Store the messages of an execution as rows, until the step that takes them deletes them."""

from __future__ import annotations

import dataclasses
import json
from typing import Any, TypeVar

import engine
from console import clock
from console.fast_path import rows
from console.models import InboxMessage
from console.statuses import DueKind, ExecutionStatus
from console.store.db import signals
from console.store.db.texts import storable
from console.store.db.writer import write

M = TypeVar("M", bound=engine.Message)
_KINDS = {
    kind.__name__: kind
    for kind in (
        engine.TaskStarted,
        engine.TaskSubmitted,
        engine.TaskSucceeded,
        engine.TaskFailed,
        engine.TaskTimedOut,
        engine.Stop,
        engine.Redrive,
    )
}


_SOON_MS = 50


def post_message(
    execution_id: int, message: engine.Message, *, soon: bool = False, at_ms: int | None = None
) -> None:
    """Put a message into an execution's inbox (inside the caller's transaction) and wake it.

    ``soon``: nothing follows from it, so it may wait a moment for another one to come along with.
    ``at_ms``: when it happened, if not now.
    """
    body = _said(storable_message(message))
    created_ms = clock.now_ms() if at_ms is None else at_ms
    row = (execution_id, type(message).__name__, json.dumps(body), created_ms)
    rows.append("console_inboxmessage", "execution_id, kind, body, created_ms", [row])
    if soon:
        signals.publish_due(clock.now_ms() + _SOON_MS, DueKind.TIMER, execution_id)
    else:
        signals.publish_runnable(execution_id)


def storable_message(message: M) -> M:
    """Return a message as it is once it was stored."""
    texts = {name: getattr(message, name) for name in message.__slots__}
    changed = {
        name: storable(text)
        for name, text in texts.items()
        if isinstance(text, str) and storable(text) != text
    }
    return dataclasses.replace(message, **changed) if changed else message  # type: ignore[arg-type]


def _said(message: engine.Message) -> dict[str, Any]:
    """Return the fields that differ from their defaults: older workers do not know newer fields."""
    pairs = ((field, getattr(message, field.name)) for field in dataclasses.fields(message))
    return {field.name: value for field, value in pairs if value != field.default}


def load_message(kind: str, body: str) -> engine.Message:
    """Make a message of its row; raise ``NewerFormat`` if this version does not know it (G16)."""
    known = _KINDS.get(kind)
    fields = json.loads(body)
    if known is None or not set(fields) <= set(known.__slots__):
        raise engine.NewerFormat(f"the message {kind}: a later version wrote it")
    return known(**fields)


def drop_stale() -> None:
    """Delete messages to executions that have ended: they came in just then, and move nothing."""
    stale = InboxMessage.objects.exclude(execution__status=ExecutionStatus.RUNNING)
    if stale.exists():
        write(stale.delete)
