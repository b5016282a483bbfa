"""View of a state machine's log: the lines that CloudWatch Logs would return."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from django.db.models import Q
from django.http import Http404
from django.urls import reverse
from django.views.decorators.http import require_safe

import engine
from console import arns
from console.features.logs import log_filter, newest, read, streams
from console.features.logs.log_filter import LogFilter
from console.masking import masked_execution
from console.models import LogGroup
from console.store.machines import log_groups as store
from console.web.core import formatting
from console.web.core.scope import Scope, render, scope_of
from console.web.graph.svg import state_names
from console.web.machines.views import machine_context

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.http import HttpRequest, HttpResponse

    from console.features.logs.newest import Mask
    from console.features.logs.streams import Stream
    from console.models import Execution, StateMachine

_LONGEST = 400
_MOST_STATES = 300


@dataclass(frozen=True, slots=True)
class LogRow:
    """A log line with its execution. ``tone``: its event's tone; ``text``: its summary.

    ``key``: the value of the query parameter that shows the whole line; ``payload``: the whole
    line, if it is open.
    """

    at_ms: int
    execution: Execution
    name: str
    number: str
    type: str
    tone: str
    state: str
    text: str
    key: str
    payload: formatting.PayloadView | None = None


@require_safe
def log_page(request: HttpRequest, machine_name: str) -> HttpResponse:
    """Show ``/machines/<name>/logs/``: filtered lines, newest first.

    ``?execution=``: the lines of one execution; ``?line=``: one line alone, laid out.
    """
    scope = scope_of(request)
    machine = scope.machine(machine_name)
    name = request.GET.get("execution", "")
    execution = scope.execution(machine_name, name) if name else None
    context = machine_context(machine) | {"tab": "logs", "execution": execution}
    template = "logs/execution_logs.html" if execution else "logs/logs.html"
    group = _log_group(scope, machine)
    if group is None:
        return render(request, template, context)
    if line := request.GET.get("line", ""):
        context["line"] = _open_row(scope, group, machine, line)
        return render(request, "logs/_log_line.html", context)
    chosen = LogFilter.of(request.GET, execution)
    context |= {"group": group, "filters": chosen, "ranges": log_filter.RANGES}
    context |= {
        "event_choices": {key: words for key, (words, _) in log_filter.EVENTS.items()},
        "states": _state_choices(machine),
        "page_address": reverse("machine-logs", args=[machine_name]),
        "is_first": chosen.query.before is None,
        "stream": streams.stream_name(execution) if execution else "",
    }
    if not chosen.problems:
        context |= _page_of_lines(scope, group, machine, chosen, request.GET.get("open", ""))
    return render(request, template, context, status=422 if chosen.problems else 200)


def _log_group(scope: Scope, machine: StateMachine) -> LogGroup | None:
    logging: dict[str, Any] = json.loads(machine.logging) if machine.logging else {}
    name = store.group_name(logging)
    groups = LogGroup.objects.filter(project=scope.project, region=scope.region, deleted_ms=None)
    return groups.filter(name=name).first() if name else None


def _state_choices(machine: StateMachine) -> tuple[str, ...]:
    """Return the states for the filter, none for an invalid definition."""
    try:
        return state_names(machine.definition.text)[:_MOST_STATES]
    except engine.DefinitionError:  # stored by a version that checked less
        return ()


def _page_of_lines(
    scope: Scope, group: LogGroup, machine: StateMachine, chosen: LogFilter, opened: str
) -> dict[str, Any]:
    """Return the page's lines. ``opened``: the key of the expanded line."""
    page = newest.newest_page(group, machine, chosen.query, _mask_of(scope))
    rows = [_log_row(line, with_payload=_line_key(line) == opened) for line in page.lines]
    return {"lines": rows, "older": log_filter.cursor_text(page.cursor)}


def _mask_of(scope: Scope) -> Mask:
    """Return a function that masks the lines of some streams."""

    def mask(log_streams: Sequence[Stream]) -> Any:
        keys = [stream.execution.pk for stream in log_streams]
        masks = masked_execution.masks_of(scope.project, keys)
        return lambda line: replace(line, text=masks[line.stream.execution.pk].details(line.text))

    return mask


def _open_row(scope: Scope, group: LogGroup, machine: StateMachine, key: str) -> LogRow:
    """Return one expanded line of a state machine; raise ``Http404``."""
    matched = re.fullmatch(r"(\d{1,18})-(\d{1,9})", key, re.ASCII)
    if matched is None:
        raise Http404("There is no such line.")
    execution, number = int(matched[1]), int(matched[2])
    spans = [span for span in streams.log_spans(group) if span.machine_arn == machine.arn]
    log_streams = list(streams.streams_by_time(group, spans, Q(pk=execution)))
    lines = read.newest_lines(group, log_streams, 1, also=Q(event_id=number))
    if not lines:
        raise Http404("There is no such line: the log group may be deleted.")
    return _log_row(_mask_of(scope)(log_streams)(lines[0]), with_payload=True)


def _line_key(line: read.Line) -> str:
    return f"{line.stream.execution.pk}-{line.number}"


def _log_row(line: read.Line, *, with_payload: bool) -> LogRow:
    answer = json.loads(line.text)
    execution = line.stream.execution
    name = execution.arn.rsplit(":", 2)[-2 if arns.is_express(execution.arn) else -1]
    kind = answer["type"]
    return LogRow(
        *(line.at_ms, execution, name, str(line.number), kind, engine.EVENT_TYPES[kind].tone),
        *(line.state, _summary(answer["details"], line.state), _line_key(line)),
        formatting.payload_view(line.text) if with_payload else None,
    )


def _summary(details: Any, state: str) -> str:
    """Return an event's details on one line, without the state's name (a column of its own)."""
    if not isinstance(details, dict):  # masked as a whole
        return str(details)
    members = [
        f"{name} {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"
        for name, value in details.items()
        if not name.endswith("Details")
        and value not in (None, "")
        and (name, value) != ("name", state)
    ]
    return "  ".join(" ".join(member.split()) for member in members)[:_LONGEST]
