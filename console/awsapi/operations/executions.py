"""Actions on executions: StartExecution, StopExecution, DescribeExecution, GetExecutionHistory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import msgspec

from console import arns
from console.awsapi import masking, paging
from console.awsapi.members import reads
from console.awsapi.operations.call import Call, present, seconds
from console.awsapi.operations.state_machines import standard_only
from console.awsapi.read_ahead import PAGES_AHEAD, PageKey, page_key
from console.db.writer import is_embedded
from console.errors import ErrorCode, ProtocolError, ValidationException
from console.integrations import mocks
from console.integrations.targets import MachineKey
from console.own_api import LongPoll
from console.statuses import ExecutionStatus
from console.store.executions import redrive as redriving
from console.store.executions.find import get_execution, list_executions, listing_place
from console.store.executions.start import pending_start
from console.store.executions.stop import stop_execution
from console.store.executions.waiting_starts import WAITING_STARTS
from console.store.machines import versions
from console.store.machines.machines import Outdated
from console.store.map_runs import map_items, map_runs
from console.store.state import history as events

if TYPE_CHECKING:
    from console.db.writer import Change
    from console.models import Alias, Execution, HistoryEvent, MapRun, StateMachine, Version

_DATA = {"included": True}
_LOOK_S = 60.0
_LISTED = "listed"
"""Marks a position in ListExecutions; tokens of earlier versions have a start, and no mark."""
_REDRIVEN = {"REDRIVEN": True, "NOT_REDRIVEN": False}


@reads("stateMachineArn name input traceHeader")
def start(call: Call) -> Change[dict[str, Any]]:
    """StartExecution."""
    if call.parent is None and not call.trusted and WAITING_STARTS.too_many():
        raise ProtocolError(
            ErrorCode.ServiceUnavailable,
            "The request has failed due to a temporary failure of the server: too many executions"
            " wait to begin",
        )
    cached = call.parent is None and not is_embedded()
    return _starting(call, cached=cached).then(_started)


def check_test_case(case: str, arn: str, machine: MachineKey) -> None:
    """Raise an error for a test case that the mock configuration lacks."""
    if case and case not in mocks.test_cases(machine):
        raise ValidationException(f"The mock configuration has no test case '{case}' for '{arn}'")


def _starting(call: Call, *, cached: bool) -> Change[Execution]:
    """Return the requested start. ``cached``: the state machine may come from a cache."""
    params = call.params
    arn, _, case = params["stateMachineArn"].partition("#")
    arns.check_unlabelled(arn)
    target = versions.resolve_target(call.project, arn, cached=cached)
    check_test_case(case, arn, MachineKey(call.project.name, target.machine.name))
    text = params.get("input")
    starting = pending_start(
        target.machine,
        version=target.version,
        alias_arn=target.alias.arn if target.alias else "",
        name=params.get("name"),
        input="{}" if text is None else text,
        trace_header=params.get("traceHeader") or "",
        test_case=case,
        ahead=True,
        parent=call.parent,
        actor=call.actor,
    )

    def start_as_it_is_now(error: Exception) -> Execution:
        if not isinstance(error, Outdated):
            raise error
        return _starting(call, cached=False).result()

    return starting.rescued_by(start_as_it_is_now) if cached else starting


def _started(execution: Execution) -> dict[str, Any]:
    return {"executionArn": execution.arn, "startDate": seconds(execution.start_ms)}


@reads("executionArn error cause")
def stop(call: Call) -> dict[str, Any]:
    """StopExecution."""
    execution = get_execution(call.project, call.params["executionArn"])
    stop_ms = stop_execution(
        execution,
        error=call.params.get("error"),
        cause=call.params.get("cause"),
        actor=call.actor,
    )
    return {"stopDate": seconds(stop_ms)}


@reads("executionArn includedData")
def describe(call: Call) -> dict[str, Any] | LongPoll:
    """DescribeExecution."""
    if masking.masks_something(call) and is_embedded():
        # Masking reads the whole history. This may be the thread of the event loop
        # (``asgi._SHORT``), which must not wait for that, so another thread does it.
        return LongPoll(lambda: _describe(call), ("described",), _LOOK_S, {})
    return _describe(call)


def _describe(call: Call) -> dict[str, Any]:
    stored = get_execution(call.project, call.params["executionArn"], express_child=True)
    execution = masking.readable_execution(call, stored)
    answer = {
        "executionArn": execution.arn,
        "stateMachineArn": execution.state_machine_arn,
        "name": execution.name,
        "status": ExecutionStatus.PENDING_REDRIVE
        if redriving.waits_for_redrive(execution)
        else execution.status,
        "startDate": seconds(execution.start_ms),
        **present(stopDate=None if execution.stop_ms is None else seconds(execution.stop_ms)),
        "redriveCount": execution.redrive_count,
        **_redrive(execution),
        **present(
            mapRunArn=execution.map_run.arn if execution.map_run_id and execution.map_run else None,
            stateMachineVersionArn=execution.version_arn or None,
            stateMachineAliasArn=execution.alias_arn or None,
            traceHeader=execution.trace_header or None,
            error=execution.error,
            cause=execution.cause,
        ),
    }
    if call.params.get("includedData") == "METADATA_ONLY":
        return answer
    answer |= {"input": execution.input, "inputDetails": _DATA}
    if execution.output is not None:
        answer |= {"output": execution.output, "outputDetails": _DATA}
    return answer


def _redrive(execution: Execution) -> dict[str, Any]:
    status, reason = redriving.redrive_status(execution)
    return {
        **_redrive_date(execution),
        "redriveStatus": status,
        **present(redriveStatusReason=reason or None),
    }


def _redrive_date(execution: Execution) -> dict[str, Any]:
    """Return the last redrive's date; AWS omits it for Express child executions."""
    moment = None if arns.is_express(execution.arn) else execution.redrive_ms
    return present(redriveDate=None if moment is None else seconds(moment))


@reads("executionArn clientToken")
def redrive(call: Call) -> dict[str, Any]:
    """RedriveExecution."""
    execution = get_execution(call.project, call.params["executionArn"])
    token = call.params.get("clientToken") or ""
    moment = redriving.redrive_execution(execution, token=token, actor=call.actor)
    return {"redriveDate": seconds(moment)}


@reads("stateMachineArn mapRunArn statusFilter redriveFilter maxResults nextToken")
def list_page(call: Call) -> dict[str, Any]:
    """ListExecutions of a state machine or Map Run, newest first."""
    params = call.params
    if not params.get("stateMachineArn") and not params.get("mapRunArn"):
        raise ValidationException("Must provide a StateMachine ARN or MapRun ARN")  # [measured]
    if params.get("stateMachineArn") and params.get("mapRunArn"):
        raise ValidationException("Must specify exactly one of: [stateMachineArn, mapRunArn]")
    if params.get("stateMachineArn") and params.get("redriveFilter"):
        raise ValidationException("redriveFilter can only be specified with mapRunArn")
    waiting = params.get("statusFilter") == ExecutionStatus.PENDING_REDRIVE
    if params.get("stateMachineArn") and waiting:
        raise ValidationException("PENDING_REDRIVE can only be specified with mapRunArn")
    owner = _owner(call)
    rows = list_executions(
        owner,
        status=params.get("statusFilter"),
        redriven=_REDRIVEN.get(params.get("redriveFilter") or ""),
        after=_open_listed(call),
        limit=paging.page_size(params) + 1,
    )
    batches = {}
    if params.get("mapRunArn"):
        batches = map_items.batch_sizes(cast("MapRun", owner), [row.pk for row in rows])

    def shown(row: Execution) -> dict[str, Any]:
        return _item(row) | present(itemCount=batches.get(row.pk))

    def place(row: Execution) -> tuple[int, int, str]:
        return *listing_place(row), _LISTED

    return paging.page_answer(call, "executions", rows, shown, place)


def _open_listed(call: Call) -> tuple[int, int] | None:
    """Return the ``listing_place`` in the request's token; raise ``InvalidToken``.

    A token of the version before is sorted by the start. Read as a token of this release, it would
    silently omit executions.
    """
    position = paging.open_position(call, call.params)
    if position is None:
        return None
    if position[2:] != [_LISTED]:
        raise paging.invalid_token()
    return position[0], position[1]


def _owner(call: Call) -> StateMachine | Version | Alias | MapRun:
    """Return the state machine or Map Run whose executions are listed."""
    if call.params.get("mapRunArn"):
        return map_runs.get_map_run(call.project, call.params["mapRunArn"])
    target = versions.resolve_target(call.project, call.params["stateMachineArn"])
    standard_only(target.machine)
    return target.alias or target.version or target.machine


def _item(row: Execution) -> dict[str, Any]:
    return {
        "executionArn": row.arn,
        "stateMachineArn": row.state_machine_arn,
        "name": row.name,
        "status": row.status,
        "startDate": seconds(row.start_ms),
        **present(stopDate=None if row.stop_ms is None else seconds(row.stop_ms)),
        **present(
            mapRunArn=row.map_run.arn if row.map_run else None,
            stateMachineVersionArn=row.version_arn or None,
            stateMachineAliasArn=row.alias_arn or None,
        ),
        "redriveCount": row.redrive_count,
        **_redrive_date(row),
    }


@reads("executionArn maxResults reverseOrder nextToken includeExecutionData")
def history(call: Call) -> dict[str, Any]:
    """GetExecutionHistory."""
    params = call.params
    execution = get_execution(call.project, params["executionArn"])
    after = paging.open_position(call, params) or 0
    reverse = bool(params.get("reverseOrder"))
    size = paging.page_size(params)
    with_data = params.get("includeExecutionData") is not False
    hide = masking.event_mask(call, execution)
    if call.as_json and with_data and hide is None:
        return _joined_page(call, page_key(execution, after, size, reverse=reverse))
    rows = events.list_events(execution.pk, after=after, limit=size + 1, reverse=reverse)

    def shown(row: HistoryEvent) -> dict[str, Any]:
        return events.aws_event(hide(row) if hide else row, include_data=with_data)

    return paging.page_answer(call, "events", rows, shown, lambda row: row.event_id)


def _joined_page(call: Call, key: PageKey) -> dict[str, Any]:
    """Return a history page whose JSON is copied into the answer unchanged.

    A caller who requests a second page, or the maximum number of events, will probably read the
    next page.
    """
    page = PAGES_AHEAD.read(key)
    if key.after or key.size == paging.MOST:
        PAGES_AHEAD.name_next(key, page)
    answer: dict[str, Any] = {"events": msgspec.Raw(page.events)}
    if page.last is not None:
        answer["nextToken"] = paging.seal_position(call, call.params, page.last)
    return answer
