"""Read further columns of an execution list: error, current or final state, parent.

A running execution is in the last state that it entered and has not left. A failed, timed out or
aborted one has the state in which it ended.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from console.feature import Hook, hooked
from console.masking import masked_execution
from console.models import Execution
from console.statuses import UNSUCCESSFUL, BulkAction, ExecutionStatus
from console.store.executions.last_states import failed_states, open_states
from console.store.executions.refusals import ACTIONS, refusals_of
from console.web.search.failures import ending_without_error

if TYPE_CHECKING:
    from collections.abc import Sequence

    from console.models import Project
    from console.web.core.scope import Scope


@dataclass(frozen=True, slots=True)
class RowFacts:
    """``entered``: the entry event of a running execution's state, or 0.

    ``error``: as its reader may see it; ``ending``: how it ended instead, where it has none;
    ``parent``: the execution that started it, if one did; ``summary``: by its machine's expression.
    """

    error: str = ""
    state: str = ""
    entered: int = 0
    ending: str = ""
    parent: Execution | None = None
    summary: str = ""

    @property
    def line(self) -> str:
        """Return error or kind of end, and state, in one line for narrow screens."""
        ended = self.error or self.ending
        if not self.state or self.state == ended:
            return ended
        return f"{ended} at {self.state}" if ended else f"At {self.state}"


_NO_FACTS = RowFacts()


def read_row_facts(project: Project, executions: Sequence[Execution]) -> dict[int, RowFacts]:
    """Return execution id -> facts, in a fixed number of queries."""
    running = [each.pk for each in executions if each.status == ExecutionStatus.RUNNING]
    ended = {each.pk: each for each in executions if each.status in UNSUCCESSFUL}
    errors = Execution.stored.filter(pk__in=ended, error__isnull=False)
    masks = masked_execution.masks_of(project, list(ended))
    states = failed_states(list(ended))
    error_by_number = {
        number: masks[number].words(error or "")
        for number, error in errors.values_list("pk", "error")
    }
    facts = {
        number: RowFacts(
            error_by_number.get(number, ""),
            states.get(number, ""),
            ending="" if error_by_number.get(number) else _ending(execution),
        )
        for number, execution in ended.items()
    }
    entered = open_states(running)
    facts |= {number: RowFacts("", *entered[number]) for number in entered}
    parents = _parents_of(project, executions)
    facts |= {
        number: replace(facts.get(number, _NO_FACTS), parent=parent)
        for number, parent in parents.items()
    }
    numbers = [each.pk for each in executions]
    for find in hooked(Hook.EXECUTION_SUMMARIES):
        facts |= {
            number: replace(facts.get(number, _NO_FACTS), summary=text)
            for number, text in find(project, numbers).items()
        }
    # A template takes ten times as long to look up what a row lacks.
    return {each.pk: facts.get(each.pk, _NO_FACTS) for each in executions}


def _parents_of(project: Project, executions: Sequence[Execution]) -> dict[int, Execution]:
    """Return execution id -> parent execution; no query without any."""
    number_of_parent = {each.pk: each.parent for each in executions if each.parent is not None}
    if not number_of_parent:
        return {}
    rows = Execution.objects.filter(project=project, pk__in=set(number_of_parent.values()))
    parents = {row.pk: row for row in rows.only("arn", "name", "state_machine_arn", "imported_ms")}
    return {
        number: parents[parent] for number, parent in number_of_parent.items() if parent in parents
    }


def read_refusals(scope: Scope, executions: Sequence[Execution]) -> dict[int, dict[str, str]]:
    """Return execution id -> bulk action -> why the action would skip it.

    For the actions that lists offer to the reader; the texts are those of the dry run.
    ``executions``: with their state machines and pauses. A list without a paused execution offers
    no resume.
    """
    refusals: dict[int, dict[str, str]] = {}
    any_paused = any(hasattr(execution, "pause") for execution in executions)
    offered = set(ACTIONS) - {BulkAction.REPLAY} - (set() if any_paused else {BulkAction.RESUME})
    for action, right in ACTIONS.items():
        if scope.may(right) and action in offered:
            for number, reason in refusals_of(action, executions).items():
                refusals.setdefault(number, {})[str(action)] = reason
    return refusals


def _ending(execution: Execution) -> str:
    since = execution.redrive_ms or execution.start_ms
    took_ms = (execution.stop_ms or since) - since
    return ending_without_error(execution.status, execution.arn, took_ms)
