"""Answer CloudWatch Logs for the log groups of functions, ``/aws/lambda/NAME``.

In the functions below, ``function`` is a name returned by ``function_of``. ``position`` is the
decoded ``nextToken`` of the request, None on the first page; ``seal`` encodes a position as a
token.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from console.awsapi import masking
from console.awsapi.operations.call import present
from console.errors import ErrorCode, ServiceError
from console.features.logs import function_lines, function_streams, masks, patterns
from console.features.logs import function_log_store as function_logs
from console.store.machines import log_groups

if TYPE_CHECKING:
    from collections.abc import Callable

    from console.awsapi.operations.call import Call
    from console.features.logs.function_lines import FunctionLine
    from console.features.logs.function_streams import FunctionStream, LinePlace

    Seal = Callable[[Any], str]

_PAGE = 50
_LINES = 10_000
NO_STREAM = "The specified log stream does not exist."
_END = 2**63 - 1


def function_of(call: Call) -> str | None:
    """Return the name of the function whose log group a request names, None for other groups.

    None also for a group named ``/aws/lambda/...`` that a state machine logs to, and for a function
    without a stored log.
    """
    name = group_name(call)
    if not name.startswith(function_lines.GROUP):
        return None
    if log_groups.is_routed(call.project, call.region, name):
        return None
    function = name.removeprefix(function_lines.GROUP)
    return function if function_lines.has_logs(call.project, call.region, function) else None


def group_name(call: Call) -> str:
    """Return the group name of a request; ``logGroupIdentifier`` may be a name or an ARN."""
    identifier = call.params.get("logGroupName") or call.params.get("logGroupIdentifier") or ""
    return str(identifier).rpartition(":log-group:")[2].removesuffix(":*")


def delete_group(call: Call, function: str) -> None:
    """DeleteLogGroup: delete the function's output, and a stored group of this name."""
    function_logs.delete_logs(call.project, call.region, function, call.actor)
    name = group_name(call)
    if log_groups.has_group(call.project, call.region, name):
        log_groups.delete_group(call.project, call.region, name, call.actor)


# -- streams ---------------------------------------------------------------------------------------


def describe_streams(
    call: Call, function: str, group_arn: str, position: Any, seal: Seal
) -> dict[str, Any]:
    """DescribeLogStreams, ordered by name, or by last call for ``LastEventTime``."""
    params, limit = call.params, call.params.get("limit") or _PAGE
    descending, prefix = bool(params.get("descending")), params.get("logStreamNamePrefix") or ""
    query = function_lines.FunctionLogQuery(call.project, call.region, function, prefix=prefix)
    by_time = params.get("orderBy") == "LastEventTime"
    after = None if position is None else (position[0], position[1])
    if by_time:
        candidates = function_streams.streams_by_time(query, after, descending=descending)
    else:
        candidates = function_streams.streams_by_name(query, after, descending=descending)
    streams = list(islice(candidates, limit + 1))
    token = None
    if len(streams) > limit:
        last = streams[limit - 1]
        token = seal(last.last_call if by_time else last.place)
    return {
        "logStreams": [_stream(group_arn, stream) for stream in streams[:limit]],
        **present(nextToken=token),
    }


def _stream(group_arn: str, stream: FunctionStream) -> dict[str, Any]:
    return {
        "logStreamName": stream.name,
        "creationTime": stream.first_ms,
        "firstEventTimestamp": stream.first_ms,
        "lastEventTimestamp": stream.last_ms,
        "lastIngestionTime": stream.last_ms,
        "uploadSequenceToken": str(stream.last_call[1]),
        "arn": f"{group_arn}:log-stream:{stream.name}",
        "storedBytes": 0,
    }


# -- lines -----------------------------------------------------------------------------------------


def get_events(call: Call, function: str, position: Any, seal: Seal) -> dict[str, Any]:
    """GetLogEvents: a page of one stream, with a forward and a backward token.

    ``position``: (direction, place), with direction ``f`` or ``b``. Raise ``ServiceError``.
    """
    params = call.params
    query = function_lines.FunctionLogQuery(call.project, call.region, function)
    executions = function_streams.find_stream(query, params["logStreamName"])
    if not executions:
        raise ServiceError(ErrorCode.ResourceNotFoundException, NO_STREAM)
    direction, place = position or ("f" if params.get("startFromHead") else "b", None)
    backward = direction == "b"
    after = None if place is None else (place[0], place[1])
    lines = function_streams.stream_lines(
        function, executions, masks.output_masker(call), after, backward=backward
    )
    since, until = params.get("startTime") or 0, params.get("endTime") or _END
    lines_in_range = (line for line in lines if since <= line.at_ms < until)
    shown, _ = function_lines.fitting(lines_in_range, params.get("limit") or _LINES)
    if backward:
        shown.reverse()
    _note(call, shown)
    return {
        "events": [_line(line) for line in shown],
        **_tokens(call, shown, direction, after, seal),
    }


def _tokens(
    call: Call, shown: list[FunctionLine], direction: str, place: LinePlace | None, seal: Seal
) -> dict[str, str]:
    """Return both tokens. At the end of a stream, the token of the request is returned."""
    token = call.params.get("nextToken")
    if shown:
        first, last = shown[0].place, shown[-1].place
    else:
        first = last = place or (0, 0)
    ends = {"f": seal(["f", last]), "b": seal(["b", first])}
    if not shown and token:
        ends[direction] = token
    return {"nextForwardToken": ends["f"], "nextBackwardToken": ends["b"]}


def filter_events(call: Call, function: str, position: Any, seal: Seal) -> dict[str, Any]:
    """FilterLogEvents: a page of matching lines of the function's streams."""
    params = call.params
    query = function_lines.FunctionLogQuery(
        project=call.project,
        region=call.region,
        function=function,
        streams=params.get("logStreamNames") or (),
        prefix=params.get("logStreamNamePrefix") or "",
        since=params.get("startTime"),
        until=params.get("endTime"),
    )
    matches = patterns.compile_pattern(params.get("filterPattern") or "")
    after = None if position is None else (position[0], position[1], position[2])
    lines, more = function_lines.fitting(
        function_lines.function_lines(query, masks.output_masker(call), after),
        params.get("limit") or _LINES,
    )
    since, until = params.get("startTime") or 0, params.get("endTime") or _END
    shown = [line for line in lines if since <= line.at_ms <= until and matches(line.text)]
    _note(call, shown)
    return {
        "events": [
            {
                "logStreamName": function_lines.stream_of(line.row.execution),
                **_line(line),
                "eventId": line.event_id,
            }
            for line in shown
        ],
        "searchedLogStreams": [],
        **present(nextToken=seal(list(lines[-1].cursor)) if more else None),
    }


def _note(call: Call, shown: list[FunctionLine]) -> None:
    """Record in the audit trail that a caller with the right to do so has read masked values."""
    if masks.stream_masks(call) is None:
        masking.note_reads(call, list({line.row.execution for line in shown}))


def _line(line: FunctionLine) -> dict[str, Any]:
    return {"timestamp": line.at_ms, "message": line.text, "ingestionTime": line.at_ms}
