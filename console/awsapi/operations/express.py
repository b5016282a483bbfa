"""StartSyncExecution: run an Express state machine while the caller waits."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from console import arns
from console.awsapi.members import reads
from console.awsapi.operations.call import Call, present, seconds
from console.awsapi.operations.executions import check_test_case
from console.errors import ErrorCode, ServiceError
from console.integrations.targets import MachineKey
from console.models import Execution
from console.own_api import LongPoll
from console.statuses import Topic
from console.store.executions.start import EXPRESS_S, start_execution
from console.store.machines import versions

if TYPE_CHECKING:
    from console.models import StateMachine

_BILLED_MS = 100  # AWS: the duration is rounded up to 100 ms, the memory to 64 MB
_BILLED_MB = 64
_SLACK_S = 30.0
_STATUS = {"ABORTED": "FAILED"}  # stopped by a person on its page


@reads("stateMachineArn name input traceHeader includedData")
def start_sync(call: Call) -> LongPoll:
    """StartSyncExecution: answers at the execution's end without holding a thread.

    If the caller disconnects, the execution continues.
    """
    params = call.params
    arn, _, case = params["stateMachineArn"].partition("#")
    arns.check_unlabelled(arn)
    target = versions.resolve_target(call.project, arn)
    _express_only(target.machine)
    check_test_case(case, arn, MachineKey(call.project.name, target.machine.name))
    text = params.get("input")
    execution = start_execution(
        target.machine,
        version=target.version,
        alias_arn=target.alias.arn if target.alias else "",
        name=params.get("name"),
        input="{}" if text is None else text,
        trace_header=params.get("traceHeader") or "",
        test_case=case,
        sync=True,
        ahead=True,
        parent=call.parent,
        actor=call.actor,
    )
    with_data = params.get("includedData") != "METADATA_ONLY"

    def look() -> dict[str, Any] | None:
        row = Execution.objects.get(pk=execution.pk)
        return None if row.status == "RUNNING" else _answer(row, with_data=with_data)

    timed_out = {**_about(execution), "status": "TIMED_OUT"}
    return LongPoll(
        look, (Topic.ANSWERED, execution.pk), EXPRESS_S + _SLACK_S, timed_out, short=True
    )


def _express_only(machine: StateMachine) -> None:
    if machine.type != "EXPRESS":
        msg = "This operation is not supported by this type of state machine"
        raise ServiceError(ErrorCode.StateMachineTypeNotSupported, msg)


def _about(row: Execution) -> dict[str, Any]:
    return {
        "executionArn": row.arn,
        "stateMachineArn": row.state_machine_arn,
        "name": row.name,
        "startDate": seconds(row.start_ms),
        "stopDate": seconds(row.stop_ms or row.start_ms + EXPRESS_S * 1000),
        **present(traceHeader=row.trace_header or None),
    }


def _answer(row: Execution, *, with_data: bool) -> dict[str, Any]:
    answer = {
        **_about(row),
        "status": _STATUS.get(row.status, row.status),
        "billingDetails": billing_details(row),
        **present(error=row.error, cause=row.cause),
        "inputDetails": {"included": with_data},
        "outputDetails": {"included": with_data},
    }
    if with_data:
        answer |= {"input": row.input, **present(output=row.output)}
    return answer


def billing_details(row: Execution) -> dict[str, int]:
    """Return AWS's billed values: duration in steps of 100 ms, memory in steps of 64 MB."""
    took = (row.stop_ms or row.start_ms) - row.start_ms
    payload_mb = (len(row.input) + len(row.output or "")) / 1024 / 1024
    return {
        "billedDurationInMilliseconds": max(math.ceil(took / _BILLED_MS), 1) * _BILLED_MS,
        "billedMemoryUsedInMB": max(math.ceil(payload_mb / _BILLED_MB), 1) * _BILLED_MB,
    }
