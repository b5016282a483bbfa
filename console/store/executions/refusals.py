"""Return which executions a bulk action (such as stop or redrive) would refuse, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from console import arns
from console.statuses import UNSUCCESSFUL, BulkAction, ExecutionStatus, MachineStatus
from console.store.executions import redrive, replay

if TYPE_CHECKING:
    from collections.abc import Sequence

    from console.models import Execution

ACTIONS: dict[str, str] = {
    BulkAction.STOP: "StopExecution",
    BulkAction.REDRIVE: "RedriveExecution",
    BulkAction.START: "StartExecution",
    BulkAction.PAUSE: "PauseExecution",
    BulkAction.RESUME: "ResumeExecution",
    BulkAction.REPLAY: "StartExecution",
}
"""Bulk action -> the API action whose right it needs."""


def refusals_of(action: str, executions: Sequence[Execution]) -> dict[int, str]:
    """Return execution number -> why the action would be refused; others are left out.

    ``executions``: with their state machines and pauses.
    """
    refusals = {execution.pk: refusal_of(action, execution) for execution in executions}
    if action == BulkAction.REDRIVE:
        refusals |= redrive.redrive_refusals(
            [execution for execution in executions if not refusals[execution.pk]]
        )
    return {number: reason for number, reason in refusals.items() if reason}


def refusal_of(action: str, execution: Execution) -> str:
    """Return why an action would be refused, according to the execution's own row."""
    is_child = execution.map_run_id is not None
    bulk_action = BulkAction(action)
    match bulk_action:
        case BulkAction.STOP:
            return "" if execution.status == ExecutionStatus.RUNNING else "It has ended"
        case BulkAction.REDRIVE:
            return redrive.BY_PARENT if is_child else ""
        case BulkAction.START:
            if is_child:
                return "A child of a Map Run is started by its parent"
            return _machine_refusal(execution)
        case BulkAction.PAUSE:
            return _pause_refusal(execution)
        case BulkAction.RESUME:
            return "" if hasattr(execution, "pause") else "It is not paused"
        case BulkAction.REPLAY:
            return _replay_refusal(execution)
        case _:
            assert_never(bulk_action)


def _pause_refusal(execution: Execution) -> str:
    if execution.status != ExecutionStatus.RUNNING:
        return "It has ended"
    if arns.is_express(execution.arn):
        return "An Express execution cannot be paused"
    return "It is paused already" if hasattr(execution, "pause") else ""


def _machine_refusal(execution: Execution) -> str:
    machine = execution.state_machine
    has_machine = machine is not None and machine.status == MachineStatus.ACTIVE
    return "" if has_machine else "Its state machine was deleted"


def _replay_refusal(execution: Execution) -> str:
    if execution.status not in UNSUCCESSFUL:
        return "Only executions that failed, timed out or were aborted are replayed"
    if execution.map_run_id is not None:
        return "A child of a Map Run cannot be replayed"
    if reason := _machine_refusal(execution):
        return reason
    if not replay.has_changed(execution):
        return "It ran with the current definition of its state machine"
    return ""
