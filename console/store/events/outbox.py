"""Write events to the outbox, in the transaction of the change that they report.

A project without an enabled rule writes none; this is cached for a second, so an execution without
rules costs nothing more. The feature ``notifications`` turns events into deliveries later.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import transaction

from console import arns
from console.db import clock, rows, signals
from console.db.rows import Statement, storable
from console.events import body
from console.feature import has_feature
from console.models import EventRule, Execution
from console.statuses import RuleState, Topic

if TYPE_CHECKING:
    from django.db.models import QuerySet

_KEPT_S = 1.0
_ABOUT = 512
_SENDER = 150
_INTO = (
    "INSERT INTO console_outboxevent"
    " (event_id, project_id, region, about, body, at_ms, routed, sent_by)"
)
_PUT = Statement(
    65,
    f"{_INTO} VALUES (%s, %s, %s, %s, %s, %s, %s, %s) ON CONFLICT (event_id) DO NOTHING",
    ("text", "bigint", "text", "text", "text", "bigint", "boolean", "text"),
    merged=f"{_INTO} SELECT * FROM {{given}} ON CONFLICT (event_id) DO NOTHING",
)
_listening: tuple[float, frozenset[int]] = (0.0, frozenset())


def has_rules(project_id: int) -> bool:
    """Return whether a rule may match a project's events.

    False on a server without notifications, where events would wait for ever.
    """
    global _listening  # noqa: PLW0603 - one memory a process
    until, projects = _listening
    if time.monotonic() >= until:
        rules = listening_rules()
        numbers = rules.values_list("project_id", flat=True).distinct()
        projects = frozenset(numbers) if has_feature("notifications") else frozenset()
        _listening = (time.monotonic() + _KEPT_S, projects)
    return project_id in projects


def listening_rules() -> QuerySet[EventRule]:
    """Return the enabled rules with a pattern, without those of archived projects."""
    rules = EventRule.objects.filter(state=RuleState.ENABLED, project__archived_ms=None)
    return rules.exclude(pattern="")


def forget_rules() -> None:
    """Clear the cache of rules, now and after this transaction's commit."""
    _forget()
    transaction.on_commit(_forget)


def _forget() -> None:
    global _listening  # noqa: PLW0603 - see above
    _listening = (0.0, frozenset())


def put_status_change(execution: Execution) -> None:
    """Write the event of an execution's status change, inside its transaction."""
    if not has_rules(execution.project_id):
        return
    if arns.is_express(execution.arn) and not settings.STATEYARD_EXPRESS_EVENTS:
        return
    change = body.StatusChange(
        execution_arn=execution.arn,
        state_machine_arn=execution.state_machine_arn,
        name=execution.name,
        status=execution.status,
        start_ms=execution.start_ms,
        stop_ms=execution.stop_ms,
        input=execution.input,
        output=execution.output,
        error=execution.error,
        cause=execution.cause,
        version_arn=execution.version_arn,
        alias_arn=execution.alias_arn,
        redrive_count=execution.redrive_count,
        redrive_ms=execution.redrive_ms,
        child_of_map=execution.map_run_id is not None,
    )
    text = body.status_change_event(change)
    region = execution.arn.split(":", 4)[3]
    put_event(execution.project_id, change.event_id, text, region=region, about=execution.arn)


def row_for_end(execution_id: int, project_id: int) -> Execution | None:
    """Return the row for the event of an execution's end, None if no rule waits for it.

    Called before the transaction, because a change that queries the database is not merged. The
    row does not change until the execution ends.
    """
    return rows.fetch_one(Execution, "id = %s", [execution_id]) if has_rules(project_id) else None


def put_execution_ended(execution_id: int, project_id: int, row: Execution | None) -> None:
    """Write the event of an execution's end, inside its transaction.

    ``row``: the execution with its end; it is read if it is not given.
    """
    if has_rules(project_id):
        execution = row or rows.fetch_one(Execution, "id = %s", [execution_id])
        if execution is not None:
            put_status_change(execution)


def put_event(  # the arguments are the columns
    project_id: int, event_id: str, text: str, *, region: str, about: str, sent_by: str = ""
) -> None:
    """Write an event unless it exists, inside the caller's transaction.

    ``about``: its resource; ``sent_by``: the caller of PutEvents, "" for this server's own events.
    """
    texts = [storable(about[:_ABOUT]), storable(text)]
    sender = storable(sent_by[:_SENDER])
    rows.change(_PUT, [(event_id, project_id, region, *texts, clock.now_ms(), False, sender)])
    signals.publish((Topic.EVENT,))
