"""Store the messages of an execution as rows, until the step that takes them deletes them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TypeVar

from django.db.models import Exists, OuterRef
from msgspec.structs import replace

import engine
from console.db import clock, rows, signals
from console.db.rows import storable
from console.db.writer import write
from console.models import Execution, InboxMessage
from console.statuses import ExecutionStatus, Topic

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.db.models import QuerySet

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
        signals.publish((Topic.SOON,), execution_id)
    else:
        signals.publish_runnable(execution_id)


def storable_message(message: M) -> M:
    """Return a message as it is once it was stored."""
    texts = {name: getattr(message, name) for name in message.__struct_fields__}
    changed = {
        name: storable(text)
        for name, text in texts.items()
        if isinstance(text, str) and storable(text) != text
    }
    return replace(message, **changed) if changed else message


def _said(message: engine.Message) -> dict[str, Any]:
    """Return the fields that differ from their defaults: older workers do not know newer fields."""
    names, defaults = message.__struct_fields__, message.__struct_defaults__
    # Only the last fields have defaults.
    default_of = dict(zip(reversed(names), reversed(defaults), strict=False))
    pairs = ((name, getattr(message, name)) for name in names)
    return {name: value for name, value in pairs if default_of.get(name, ...) != value}


def load_messages(rows: Sequence[tuple[str, str]]) -> list[engine.Message]:
    """Make the messages of their rows (kind, body), in their order.

    A timeout tells of those that follow it at once: they came in one transaction. Their own
    messages change nothing then.
    """
    messages: list[engine.Message] = []
    also: tuple[tuple[int, bool], ...] = ()
    for kind, body in reversed(rows):
        message = load_message(kind, body)
        if isinstance(message, engine.TaskTimedOut):
            message, also = replace(message, also=also), ((message.task, message.heartbeat), *also)
        else:
            also = ()
        messages.append(message)
    return messages[::-1]


def load_message(kind: str, body: str) -> engine.Message:
    """Make a message of its row; raise ``NewerFormat`` if this version does not know it (G16)."""
    known = _KINDS.get(kind)
    fields = json.loads(body)
    if known is None or not set(fields) <= set(known.__struct_fields__):
        raise engine.NewerFormat(f"the message {kind}: a later version wrote it")
    return known(**fields)


def drop_stale() -> None:
    """Delete messages to executions that have ended: they came in just then, and move nothing."""
    stale = stale_messages()
    if stale.exists():
        write(stale.delete)


def stale_messages() -> QuerySet[InboxMessage]:
    """Return the messages to executions that have ended.

    Looked up from the messages, which are few: a join may begin with the executions that wait.
    """
    running = Execution.objects.filter(pk=OuterRef("execution_id"), status=ExecutionStatus.RUNNING)
    return InboxMessage.objects.filter(~Exists(running))
