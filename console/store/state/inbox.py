"""Store messages to an execution as rows. The step that handles them deletes the rows."""

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
        engine.SetBreakpoints,
        engine.Release,
        engine.AnswerTask,
        engine.Skip,
        engine.FailState,
    )
}


def post_message(
    execution_id: int, message: engine.Message, *, soon: bool = False, at_ms: int | None = None
) -> None:
    """Add a message to an execution's inbox and wake the execution.

    Runs inside the caller's transaction. ``soon``: the message changes no state by itself, so a
    short delay is allowed, and it can share a step with a later message. ``at_ms``: time of the
    event in epoch milliseconds, None for now.
    """
    body = _changed_fields(storable_message(message))
    created_ms = clock.now_ms() if at_ms is None else at_ms
    row = (execution_id, type(message).__name__, json.dumps(body), created_ms)
    rows.append("console_inboxmessage", "execution_id, kind, body, created_ms", [row])
    if soon:
        signals.publish((Topic.SOON,), execution_id)
    else:
        signals.publish_runnable(execution_id)


def storable_message(message: M) -> M:
    """Return a message with its texts changed to what the database stores."""
    texts = {name: getattr(message, name) for name in message.__struct_fields__}
    changed = {
        name: storable(text)
        for name, text in texts.items()
        if isinstance(text, str) and storable(text) != text
    }
    return replace(message, **changed) if changed else message


def _changed_fields(message: engine.Message) -> dict[str, Any]:
    """Return the fields without defaults, as JSON: older workers refuse unknown fields."""
    names, defaults = message.__struct_fields__, message.__struct_defaults__
    # Only the last fields have defaults.
    default_of = dict(zip(reversed(names), reversed(defaults), strict=False))
    pairs = ((name, getattr(message, name)) for name in names)
    return {name: value for name, value in pairs if default_of.get(name, ...) != value}


def load_messages(rows: Sequence[tuple[str, str]]) -> list[engine.Message]:
    """Return the messages of rows (kind, body), in the order of the rows.

    The first of several consecutive timeouts lists the others in ``also``, because their tasks
    timed out in one transaction. The other messages then have no effect.
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
    """Return the message of a row; raise ``NewerFormat`` if a later version wrote it (G16)."""
    message_class = _KINDS.get(kind)
    fields = json.loads(body)
    if message_class is None or not set(fields) <= set(message_class.__struct_fields__):
        raise engine.NewerFormat(f"the message {kind}: a later version wrote it")
    return message_class(**fields)


def drop_stale() -> None:
    """Delete the messages to ended executions: they arrived too late to have an effect."""
    stale = stale_messages()
    if stale.exists():
        write(stale.delete)


def stale_messages() -> QuerySet[InboxMessage]:
    """Return the messages to executions that have ended.

    The query starts at the messages, of which there are few. A join could start at the running
    executions, of which there are many.
    """
    running = Execution.objects.filter(pk=OuterRef("execution_id"), status=ExecutionStatus.RUNNING)
    return InboxMessage.objects.filter(~Exists(running))
