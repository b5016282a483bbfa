"""Return summaries for the core's pages and for notifications, masked for every reader."""

from __future__ import annotations

from typing import TYPE_CHECKING

from console.features.summary import store
from console.features.summary.expression import expression_problem
from console.features.summary.models import ExecutionSummary
from console.masking import masked_execution
from console.models import Execution, Tag
from console.store.machines.machine_options import SUMMARY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from console.models import Project, StateMachine


def summaries_of(project: Project, numbers: Sequence[int]) -> dict[int, str]:
    """Return execution number -> summary of the summarised executions, in one query.

    Summaries evaluated under other masked paths are omitted: they may show values masked now.
    """
    rows = ExecutionSummary.objects.filter(pk__in=numbers).exclude(text="")
    if project.masked:
        rows = rows.filter(masks=store.masks_key(project))
    texts = dict(rows.values_list("pk", "text"))
    if not texts or not project.masked:
        return texts
    masks = masked_execution.masks_of(project, list(texts))
    return {number: masks[number].words(text) for number, text in texts.items()}


def execution_page(execution: Execution, _transitions: int) -> dict[str, str]:
    """Return the summary for an execution's page, evaluated now if it has just ended."""
    row = ExecutionSummary.objects.filter(pk=execution.pk).first()
    if row is None:
        return {}
    if row.stop_ms != execution.stop_ms and execution.stop_ms is not None:
        return {"summary": fresh_summary(execution)}
    return {"summary": summaries_of(execution.project, [execution.pk]).get(execution.pk, "")}


def fresh_summary(execution: Execution) -> str:
    """Return the current summary of an execution, even if not stored yet."""
    expression = store.expression_of(execution)
    if not expression or execution.state_machine_id is None:
        return ""
    (summary,) = store.evaluate_all([execution], {execution.state_machine_id: expression})
    return summary.text


def tag_problem(key: str, value: str) -> str:
    """Return why a tag's value is not a valid expression; "" if it is."""
    if key != SUMMARY:
        return ""
    problem = expression_problem(value)
    return f"{SUMMARY} is not a JSONata expression: {problem}." if problem else ""


def machine_hint(machine: StateMachine) -> str:
    """Return why a state machine's latest execution has no summary; "" if all is well."""
    expression = store.tag_value(Tag.objects.filter(arn=machine.arn).values_list("key", "value"))
    if not expression:
        return ""
    if problem := tag_problem(SUMMARY, expression):
        return problem
    newest = Execution.objects.filter(state_machine=machine, map_run=None)
    last = newest.order_by("-start_ms", "-pk").values_list("name", "summary__problem").first()
    if last is None or not last[1]:
        return ""
    return f"{SUMMARY} has no value for {last[0]}: {last[1].rstrip('.')}."
