"""CloudWatch Logs actions: groups, streams and lines of executions and functions."""

from __future__ import annotations

from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

from console import arns
from console.awsapi import masking, paging
from console.awsapi.members import reads
from console.awsapi.operations.call import present
from console.errors import ErrorCode, InvalidToken, ServiceError
from console.features.logs import (
    function_log_groups,
    function_streams,
    masks,
    patterns,
    read,
    streams,
)
from console.features.logs.function_log_groups import NO_STREAM
from console.own_api import LongPoll
from console.store.machines import log_groups

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from console.awsapi.operations.call import Call
    from console.features.logs.function_streams import FunctionGroup
    from console.features.logs.read import Line
    from console.features.logs.streams import Stream
    from console.models import LogGroup
    from console.own_api import LongPoll

_PAGE = 50
_LINES = 10_000
_LAST = 2**31 - 1


# -- groups ----------------------------------------------------------------------------------------


@reads(
    'logGroupName logGroupClass="STANDARD" deletionProtectionEnabled=false',
    ignored={"tags": "no tag of a log group can be read here"},
)
def create_group(call: Call) -> dict[str, Any]:
    """CreateLogGroup."""
    log_groups.create_group(call.project, call.region, call.params["logGroupName"], call.actor)
    return {}


@reads("logGroupName")
def delete_group(call: Call) -> dict[str, Any]:
    """DeleteLogGroup."""
    function = function_log_groups.function_of(call)
    if function is not None:
        function_log_groups.delete_group(call, function)
        return {}
    log_groups.delete_group(call.project, call.region, call.params["logGroupName"], call.actor)
    return {}


@reads(
    "logGroupNamePrefix logGroupNamePattern nextToken limit includeLinkedAccounts=false "
    'logGroupClass="STANDARD"'
)
def describe_groups(call: Call) -> dict[str, Any]:
    """DescribeLogGroups, by name."""
    params = call.params
    if params.get("logGroupNamePrefix") and params.get("logGroupNamePattern"):
        raise ServiceError(
            ErrorCode.InvalidParameterException,
            "LogGroup name prefix and LogGroup name pattern are mutually exclusive parameters.",
        )
    limit = params.get("limit") or _PAGE
    prefix, part = (params.get(f"logGroupName{kind}") or "" for kind in ("Prefix", "Pattern"))
    after = _position(call) or ""
    groups: dict[str, LogGroup | FunctionGroup] = {
        group.name: group for group in function_streams.function_groups(call.project, call.region)
    }
    groups |= {group.name: group for group in log_groups.list_groups(call.project, call.region)}
    names = sorted(
        name for name in groups if name > after and name.startswith(prefix) and part in name
    )
    return {
        "logGroups": [_group(call, groups[name]) for name in names[:limit]],
        **present(nextToken=_token(call, names[limit - 1]) if len(names) > limit else None),
    }


def _group(call: Call, group: LogGroup | FunctionGroup) -> dict[str, Any]:
    arn = _group_arn(call, group.name)
    return {
        "logGroupName": group.name,
        "creationTime": group.created_ms,
        "metricFilterCount": 0,
        "arn": f"{arn}:*",
        "storedBytes": 0,
        "logGroupClass": "STANDARD",
        "logGroupArn": arn,
    }


def _group_arn(call: Call, name: str) -> str:
    partition = arns.partition_of(call.region)
    return f"arn:{partition}:logs:{call.region}:{call.project.account_id}:log-group:{name}"


def _wanted_group(call: Call) -> LogGroup:
    """Return the requested group, by name or ARN."""
    _check_names(call)
    name = function_log_groups.group_name(call)
    return log_groups.get_group(call.project, call.region, name)


def _wanted_function(call: Call) -> str | None:
    """Return the function of the requested group, None for other groups."""
    _check_names(call)
    return function_log_groups.function_of(call)


def _check_names(call: Call) -> None:
    name, identifier = (call.params.get(key) for key in ("logGroupName", "logGroupIdentifier"))
    if bool(name) == bool(identifier):
        raise ServiceError(
            ErrorCode.InvalidParameterException,
            "Exactly one of logGroupName and logGroupIdentifier must be given.",
        )


# -- streams ---------------------------------------------------------------------------------------


@reads("logGroupName logGroupIdentifier logStreamNamePrefix orderBy descending nextToken limit")
def describe_streams(call: Call) -> dict[str, Any]:
    """DescribeLogStreams, by name or, for LastEventTime, by the executions' starts."""
    if call.params.get("orderBy") == "LastEventTime" and call.params.get("logStreamNamePrefix"):
        raise ServiceError(
            ErrorCode.InvalidParameterException,
            "Cannot order by LastEventTime with a logStreamNamePrefix.",
        )
    function = _wanted_function(call)
    if function is not None:
        arn = _group_arn(call, function_log_groups.group_name(call))
        return function_log_groups.describe_streams(
            call, function, arn, _position(call), partial(_token, call)
        )
    group, limit = _wanted_group(call), call.params.get("limit") or _PAGE
    page = list(islice(_streams(call, group), limit + 1))
    token = None
    if len(page) > limit:
        last = page[limit - 1]
        token = _token(call, [last.span.machine_arn, *last.place])
    return {
        "logStreams": [_stream(call, group, stream) for stream in page[:limit]],
        **present(nextToken=token),
    }


def _streams(call: Call, group: LogGroup) -> Iterator[Stream]:
    params, after = call.params, _position(call)
    prefix, descending = params.get("logStreamNamePrefix") or "", bool(params.get("descending"))
    if params.get("orderBy") != "LastEventTime":
        place = tuple(after) if after else None
        return streams.streams_by_name(group, prefix=prefix, after=place, descending=descending)
    place = (after[1], after[2]) if after else None
    return streams.streams_by_time(
        group, streams.log_spans(group), None, place, descending=descending
    )


def _stream(call: Call, group: LogGroup, stream: Stream) -> dict[str, Any]:
    return {
        "logStreamName": stream.name,
        "creationTime": stream.execution.start_ms,
        "firstEventTimestamp": stream.first_ms,
        "lastEventTimestamp": stream.last_ms,
        "lastIngestionTime": stream.last_ms,
        "uploadSequenceToken": str(stream.execution.pk),
        "arn": f"{_group_arn(call, group.name)}:log-stream:{stream.name}",
        "storedBytes": 0,
    }


def _wanted_stream(group: LogGroup, name: str) -> Stream:
    stream = streams.find_stream(group, name)
    if stream is None:
        raise ServiceError(ErrorCode.ResourceNotFoundException, NO_STREAM)
    return stream


# -- lines -----------------------------------------------------------------------------------------


@reads(
    "logGroupName logGroupIdentifier logStreamName startTime endTime nextToken limit "
    "startFromHead unmask=false"
)
def get_events(call: Call) -> dict[str, Any]:
    """GetLogEvents: a page of one stream, with a token for either direction."""
    function = _wanted_function(call)
    if function is not None:
        return function_log_groups.get_events(
            call, function, _position(call), partial(_token, call)
        )
    params, group = call.params, _wanted_group(call)
    stream = _wanted_stream(group, params["logStreamName"])
    limit = params.get("limit") or _LINES
    span = read.Range(params.get("startTime"), params.get("endTime"))
    direction, place = _position(call) or ("f" if params.get("startFromHead") else "b", None)
    if direction == "f":
        ends = {"after": place or 0}
    else:
        ends = {"before": _LAST if place is None else place}
    lines = read.stream_lines(group, stream, span, limit, hide=masks.stream_masks(call), **ends)
    _note(call, lines)
    return {
        "events": [_line(line) for line in lines],
        **_tokens(call, lines, direction, place),
    }


def _tokens(call: Call, lines: list[Line], direction: str, place: int | None) -> dict[str, str]:
    """Return both tokens; at an end, the request's token is returned."""
    token = call.params.get("nextToken")
    if lines:
        first, last = lines[0].number, lines[-1].number
    elif direction == "f":
        first, last = (place or 0) + 1, place or 0
    else:
        first, last = (place or 1), (place or 1) - 1
    ends = {"f": _token(call, ["f", last]), "b": _token(call, ["b", first])}
    if not lines and token:
        ends[direction] = token
    return {"nextForwardToken": ends["f"], "nextBackwardToken": ends["b"]}


@reads(
    "logGroupName logGroupIdentifier logStreamNames logStreamNamePrefix startTime endTime "
    "filterPattern nextToken limit startFromHead=true unmask=false",
    {"interleaved": "AWS takes it for true since 2019"},
)
def filter_events(call: Call) -> dict[str, Any]:
    """FilterLogEvents: matching lines of a group, or of some of its streams."""
    function = _wanted_function(call)
    if function is not None:
        return function_log_groups.filter_events(
            call, function, _position(call), partial(_token, call)
        )
    params, group = call.params, _wanted_group(call)
    names, prefix = params.get("logStreamNames"), params.get("logStreamNamePrefix") or ""
    if names and prefix:
        raise ServiceError(
            ErrorCode.InvalidParameterException,
            "logStreamNames and logStreamNamePrefix are mutually exclusive.",
        )
    matches = patterns.compile_pattern(params.get("filterPattern") or "")
    last, position = params.get("endTime"), _position(call)
    span = read.Range(params.get("startTime"), None if last is None else last + 1)
    after = None if position is None else (position[0], position[1], position[2])
    if names:
        log_streams = iter(_named(group, names, after))
    else:
        log_streams = read.streams_from(group, span, prefix, after)
    limit = params.get("limit") or _LINES
    hide = masks.stream_masks(call)
    page = read.search_lines(group, log_streams, span, matches, limit, after, hide)
    _note(call, page.lines)
    return {
        "events": [_matched_event(line) for line in page.lines],
        "searchedLogStreams": [],
        **present(nextToken=_token(call, list(page.cursor)) if page.cursor else None),
    }


def _note(call: Call, lines: list[Line]) -> None:
    """Record that lines are read unmasked, unless the caller sees masked values only."""
    if masks.stream_masks(call) is None:
        masking.note_reads(
            call, list({line.stream.place: line.stream.execution for line in lines}.values())
        )


def _named(group: LogGroup, names: list[str], after: read.Cursor | None) -> list[Stream]:
    log_streams = [_wanted_stream(group, name) for name in dict.fromkeys(names)]
    log_streams.sort(key=lambda stream: stream.place)
    return [stream for stream in log_streams if after is None or stream.place >= after[:2]]


def _line(line: Line) -> dict[str, Any]:
    return {"timestamp": line.at_ms, "message": line.text, "ingestionTime": line.at_ms}


def _matched_event(line: Line) -> dict[str, Any]:
    return {"logStreamName": line.stream.name, **_line(line), "eventId": line.event_id}


# -- pages -----------------------------------------------------------------------------------------


def _bound(call: Call) -> dict[str, Any]:
    """Return the data a token is bound to: project and request, without the page."""
    loose = ("nextToken", "limit", "startFromHead", "interleaved")
    parameters = {name: value for name, value in call.params.items() if name not in loose}
    return {**parameters, "project": call.project.pk, "region": call.region}


def _token(call: Call, position: Any) -> str:
    return paging.seal_position(call, _bound(call), position)


def _position(call: Call) -> Any:
    bound = _bound(call) | {"nextToken": call.params.get("nextToken")}
    try:
        return paging.open_position(call, bound)
    except InvalidToken:
        raise ServiceError(
            ErrorCode.InvalidParameterException, "The specified nextToken is invalid."
        ) from None


HANDLERS: dict[str, Callable[[Call], dict[str, Any] | LongPoll]] = {
    "CreateLogGroup": create_group,
    "DeleteLogGroup": delete_group,
    "DescribeLogGroups": describe_groups,
    "DescribeLogStreams": describe_streams,
    "FilterLogEvents": filter_events,
    "GetLogEvents": get_events,
}
