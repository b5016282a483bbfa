"""Plan and start bulk replays: failed executions with their state machine's new definition."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.http import Http404

from console.errors import ValidationException
from console.features.replay.plans import plan_replay
from console.masking import masked_execution
from console.models import Execution
from console.statuses import BulkAction
from console.store.executions.refusals import refusal_of
from console.store.executions.replay import start_replay
from console.web.execution.recorded_input import recorded_fields
from console.web.execution.repeated_calls import RepeatedCalls

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from console.db.audit import Actor
    from console.features.replay.plans import ReplayPlan

MOST_PLANNED = 200
"""Number of latest executions whose histories a dry run reads."""


@dataclass(frozen=True, slots=True)
class ReplayPlans:
    """The plans of a dry run. ``plans``: execution number -> plan, if its history was read."""

    plans: Mapping[int, ReplayPlan]

    @property
    def refusals(self) -> dict[int, str]:
        """Return execution number -> why it cannot be replayed, from its history."""
        return {number: plan.refusal for number, plan in self.plans.items() if plan.refusal}

    @property
    def calls(self) -> RepeatedCalls:
        """Return the calls that all replays together would repeat."""
        return RepeatedCalls.summed(plan.calls for plan in self.plans.values())


@dataclass(frozen=True, slots=True)
class Beginning:
    """The first state of a replay. ``input``, ``variables``: as recorded, unmasked."""

    state: str
    input: str
    variables: str


def plan_replays(executions: Sequence[Execution]) -> ReplayPlans:
    """Return the plan of each replay: its first state and the repeated calls.

    Reads the histories of the first ``MOST_PLANNED``.
    """
    numbers = [execution.pk for execution in executions[:MOST_PLANNED]]
    rows = Execution.objects.filter(pk__in=numbers)
    rows = rows.select_related("definition", "project", "state_machine__definition")
    executions_by_number = rows.in_bulk()
    return ReplayPlans({number: plan_replay(each) for number, each in executions_by_number.items()})


def read_beginning(execution: Execution) -> Beginning:
    """Return the first state of an execution's replay; raise ``ValidationException``."""
    if reason := refusal_of(BulkAction.REPLAY, execution):
        raise ValidationException(reason)
    plan = plan_replay(execution)
    if plan.point is None:
        raise ValidationException(plan.refusal)
    state, visit = plan.point.state, plan.point.visit
    try:
        read = recorded_fields(masked_execution.unmask_execution(execution), state, str(visit))
    except Http404 as error:
        raise ValidationException(str(error)) from None
    if masked_execution.shows_hidden(execution, read["input"], read["variables"]):
        raise ValidationException(masked_execution.HIDDEN_ELSEWHERE)
    return Beginning(state, read["input"], read["variables"])


def start_from(execution: Execution, begin: Beginning, actor: Actor) -> Execution:
    """Start a replay; it refers to the execution as its origin."""
    variables = "" if begin.variables == "{}" else begin.variables
    return start_replay(
        execution,
        begin.state,
        input=begin.input,
        variables=variables,
        changed=True,
        actor=actor,
    )
