"""Answer the log of a state machine: the lines that CloudWatch Logs would return."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from django.views.decorators.http import require_safe

import engine
from console import arns
from console.logs import patterns, read, streams
from console.masking import masked_execution
from console.models import LogGroup
from console.store.machines import log_groups as store
from console.web.core.scope import Scope, render, scope_of
from console.web.machines.machine_views import machine_context

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from console.models import Execution, StateMachine

_LINES = 200
_READ = 2_000
_STREAMS = 50


@dataclass(frozen=True, slots=True)
class LogPage:
    """A line with the execution it is of; ``tone``: of its event."""

    at_ms: int
    execution: Execution
    name: str
    number: str
    type: str
    tone: str
    text: str


@require_safe
def log_page(request: HttpRequest, machine_name: str) -> HttpResponse:
    """Answer ``/machines/<name>/logs/``: the newest lines that match a filter pattern."""
    scope = scope_of(request)
    machine = scope.machine(machine_name)
    pattern = request.GET.get("pattern", "")[:1024]
    context = machine_context(machine) | {
        "tab": "logs",
        "pattern": pattern,
        "most": _LINES,
        "streams": _STREAMS,
    }
    group = _log_group(scope, machine)
    if group is None:
        return render(request, "machines/logs.html", context)
    try:
        context |= {"group": group, "lines": _newest_streams(scope, group, machine, pattern)}
    except patterns.InvalidPattern as error:
        context |= {"group": group, "lines": [], "problem": error.message}
    status = 422 if "problem" in context else 200
    return render(request, "machines/logs.html", context, status=status)


def _log_group(scope: Scope, machine: StateMachine) -> LogGroup | None:
    logging: dict[str, Any] = json.loads(machine.logging) if machine.logging else {}
    name = store.group_name(logging)
    groups = LogGroup.objects.filter(project=scope.project, region=scope.region, deleted_ms=None)
    return groups.filter(name=name).first() if name else None


def _newest_streams(
    scope: Scope, group: LogGroup, machine: StateMachine, pattern: str
) -> list[LogPage]:
    """Return the newest lines that match, of the machine's last executions."""
    matches = patterns.compile_pattern(pattern)
    known = [span for span in streams.log_spans(group) if span.machine_arn == machine.arn]
    newest = list(islice(streams.streams_by_time(group, known, descending=True), _STREAMS))
    masks = masked_execution.masks_of(scope.project, [stream.execution.pk for stream in newest])
    lines = (
        replace(line, text=masks[line.stream.execution.pk].details(line.text))
        for line in read.newest_lines(group, newest, _READ)
    )
    matching = (line for line in lines if matches(line.text))
    return [_log_page(line) for line in islice(matching, _LINES)]


def _log_page(line: read.Line) -> LogPage:
    kind = json.loads(line.text)["type"]
    execution = line.stream.execution
    name = execution.arn.rsplit(":", 2)[-2 if arns.is_express(execution.arn) else -1]
    tone = engine.EVENT_TYPES[kind].tone
    return LogPage(line.at_ms, execution, name, str(line.number), kind, tone, line.text)
