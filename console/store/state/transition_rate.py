"""Limit the state transitions of executions to the rate of their project.

A step enters as many states as the bucket has tokens, and pays in its own commit, so a token is
gone if and only if the transition was made. An execution without tokens reserves future tokens, in
order of arrival: a timer row has their number and the time when they are available. So a throttled
execution always has a timer that continues it, after any crash, and nobody polls meanwhile.

Only messages that enter or retry a state are throttled: stops, timeouts and heartbeats pass.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import engine
from console import arns
from console.config import quotas
from console.db import clock, rows
from console.models import Timer
from console.store.state import throttle
from engine import event_types

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from django.db.models import QuerySet

    from console.config.quotas import Rate
    from console.models import TokenBucket

BUCKET = "state_transition"
_TIMER = "transitions/"
_SHARE_S = 0.1  # maximum reservation at once, because others wait, too
URGENT = ("TaskStarted", "TaskSubmitted", "Redrive")
_EXECUTION_TIMER = "execution"
_WHOSE = (
    "SELECT p.id, p.name, e.state_machine_arn FROM console_execution e"
    " JOIN console_project p ON p.id = e.project_id WHERE e.id = %s"
)
_TAKEN = "SELECT name FROM console_timer WHERE execution_id = %s AND name LIKE %s"
_GIVEN = (
    "SELECT t.name FROM console_timer t JOIN console_execution e ON e.id = t.execution_id"
    " WHERE t.due_ms <= %s AND t.name LIKE %s AND e.project_id = %s"
)
_STOPS = "SELECT 1 FROM console_inboxmessage WHERE execution_id = %s AND kind = 'Stop' LIMIT 1"


class NoTokens(Exception):
    """Another process took the tokens that a step has used; nothing was written, try again."""


@dataclass
class TransitionBudget:
    """Transitions a step may make. ``paid``: tokens taken earlier and available now.

    ``pending``: tokens it took that are still to come. ``used``: how many transitions it made.
    ``waiting``: how many messages were not taken. ``timer``: until tokens of the future.
    """

    execution_id: int
    project_id: int
    rate: Rate
    state_machine_arn: str
    paid: int = 0
    pending: int = 0
    allowed: int = 0
    used: int = 0
    waiting: int = 0
    timer: engine.SetTimer | None = None


def is_limited(project: str, arn: str) -> bool:
    """Return whether an execution pays tokens; Express ones have no limit."""
    return (
        quotas.limit_transitions()
        and not arns.is_express(arn)
        and quotas.quotas_of(project).state_transition is not None
    )


def is_token_timer(timer: str) -> bool:
    """Return whether a timer signals available tokens."""
    return timer.startswith(_TIMER)


def budget_of(execution_id: int, arn: str, tokens: Sequence[str]) -> TransitionBudget | None:
    """Return how many transitions an execution may make now; None if it is not limited.

    ``tokens``: the names of its due timers that promised tokens for now.
    """
    if not quotas.limit_transitions() or arns.is_express(arn):
        return None
    with rows.open_cursor() as cursor:
        cursor.execute(_WHOSE, [execution_id])
        project_id, name, machine = cursor.fetchone()
        rate = quotas.quotas_of(name).state_transition
        if rate is None:
            return None
        cursor.execute(_TAKEN, [execution_id, f"{_TIMER}%"])
        taken_names = {name for (name,) in cursor.fetchall()}
    budget = TransitionBudget(execution_id, project_id, rate, machine)
    budget.paid, budget.pending = (
        _total_tokens(tokens),
        _total_tokens(taken_names.difference(tokens)),
    )
    if not budget.pending:
        available = throttle.available_tokens(project_id, BUCKET, rate)
        budget.allowed = budget.paid + max(int(_at_most(budget, available, 0)), 0)
    return budget


def _at_most(budget: TransitionBudget, tokens: float, paid: int) -> float:
    """Return the free tokens: at most the bucket's size minus the reserved tokens.

    Otherwise, after a downtime, all executions with reserved tokens would continue at once,
    together with a full bucket of others.
    """
    if tokens <= 0:
        return tokens
    with rows.open_cursor() as cursor:
        cursor.execute(_GIVEN, [clock.now_ms(), f"{_TIMER}%", budget.project_id])
        outstanding = _total_tokens(name for (name,) in cursor.fetchall())
    return min(tokens, budget.rate.bucket - outstanding - paid)


def _total_tokens(tokens: Iterable[str]) -> int:
    return sum(int(token.removeprefix(_TIMER)) for token in tokens)


def take_exempt(
    budget: TransitionBudget, came_in: Sequence[Any], due: Sequence[str]
) -> tuple[list[Any], list[str]]:
    """Return the inbox rows and due timers that need no token; the others wait.

    If there is a Stop, return all rows, because earlier messages are processed before it.
    """
    stops = rows.fetch_row(_STOPS, [budget.execution_id]) is not None
    messages = [row for row in came_in if stops or row[1] in URGENT]
    names = [name for name in due if name == _EXECUTION_TIMER]
    budget.waiting = len(came_in) - len(messages) + len(due) - len(names)
    return messages, names


def held_back() -> QuerySet[Timer, int]:
    """Return the executions that wait for tokens."""
    coming = Timer.objects.filter(name__startswith=_TIMER, due_ms__gt=clock.now_ms())
    return coming.values_list("execution_id", flat=True)


def count_entered(step: engine.Step) -> int:
    """Return the number of states that a step entered."""
    return sum(event.type in event_types.STATE_ENTRIES for event in step.events)


def count_retried(run: engine.Run, message: engine.Message) -> int:
    """Return 1 for a message that retries a state, else 0."""
    if not isinstance(message, engine.TimerFired):
        return 0
    frames = run.frames.values()
    return int(any(frame.phase == "backoff" and frame.timer == message.timer for frame in frames))


def reserve_tokens(budget: TransitionBudget, unfinished: int, *, running: bool) -> bool:
    """Pay for a step, and reserve tokens for its unfinished work (in its transaction).

    ``unfinished``: lines of control and messages after the step. Return whether they can continue
    without waiting for a timer.

    Raise ``NoTokens`` if another process has taken the tokens. Branches or iterations that one
    state starts at once are started together, even if the bucket goes below zero.
    """
    budget.timer = None
    bucket = throttle.lock(budget.project_id, BUCKET, budget.rate)
    bucket.tokens = _at_most(budget, bucket.tokens, budget.paid)
    counted_on = min(budget.used, budget.allowed) - budget.paid
    if counted_on > max(bucket.tokens, 0):
        raise NoTokens
    bucket.tokens -= budget.used - budget.paid
    if not running:
        bucket.tokens += budget.pending
    elif budget.waiting + unfinished and not budget.pending and budget.used >= budget.allowed:
        _take_ahead(budget, bucket, budget.waiting + unfinished)
    bucket.tokens = min(bucket.tokens, budget.rate.bucket)
    bucket.save()
    return not (budget.timer or budget.pending)


def _take_ahead(budget: TransitionBudget, bucket: TokenBucket, tokens: int) -> None:
    """Reserve future tokens, and name a timer for the time when they are available."""
    most = max(int(budget.rate.refill * _SHARE_S), 1)
    number = min(tokens, most)
    bucket.tokens -= number
    missing_ms = max(-bucket.tokens, 0) / budget.rate.refill * 1000
    due_ms = bucket.at_ms + int(missing_ms) + 1
    budget.timer = engine.SetTimer(f"{_TIMER}{number}", due_ms)
    throttle.count(budget.project_id, budget.state_machine_arn, number)
