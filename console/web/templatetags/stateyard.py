"""Template tags and filters shared by all pages."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache, lru_cache
from importlib.resources import files
from io import BytesIO
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode
from xml.etree import ElementTree as ET
from zipfile import ZipFile

from django import template
from django.conf import settings
from django.urls import get_script_prefix, reverse
from django.utils.html import escape, format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from console.db import clock
from console.feature import Hook, has_feature, hooked
from console.integrations import redaction
from console.models import StateMachine
from console.store.executions import next_starts, redrive
from console.web.core import cli_commands, columns, formatting
from console.web.core.addresses import import_address
from console.web.core.query_parameters import EVENT_FILTERS
from console.web.core.scope import scope_of
from console.web.execution import steps
from console.web.graph import picture_svg
from console.web.history import debug_edits
from console.web.search import filter_words

if TYPE_CHECKING:
    from collections.abc import Collection

    from django.template import Context

    from console.models import Execution, ExecutionNote, HaltedExecution, Pause
    from console.web.execution.steps import InProgress
    from console.web.graph.shapes import Box, Picture
    from console.web.history.event_table import EventPage, EventRow


_GENERATED = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}(_\d+)?", re.ASCII)
register = template.Library()


@register.simple_tag(takes_context=True, name="href")
def page_address(context: Context, view: str, *names: str, **query: Any) -> str:
    """Return the URL of a view, with the region of the page unless it is the default."""
    region = context.get("region")
    if region and region != settings.STATEYARD_REGION:
        query["region"] = region
    parameters = {key: value for key, value in query.items() if value not in (None, "", 0)}
    path = _path_below(get_script_prefix(), view, names)
    return f"{path}?{urlencode(parameters)}" if parameters else path


@lru_cache(maxsize=4096)
def _path_below(_prefix: str, view: str, names: tuple[str, ...]) -> str:
    """Return the path of a view. ``_prefix`` begins the path, so it is part of the cache key."""
    return reverse(view, args=names)


_POLL_PARAMETERS = frozenset(
    {
        *(
            "after",
            "shown",
            "listed_ms",
            "follow",
            "seen_rows",
            "seen_visit",
            "seen_step",
            "newest",
            "count",
            "running",
            "seen",
            "failed",
        ),
        *("note", "notes", "entered", "maps", "beats", "drawn", "ended"),
    }
)
"""Parameters of polls, and of other requests for a part of a page. Links do not keep them."""


_CHOICES = ("view", "step")
"""Parameters that are kept even if empty, because the empty value is not the default."""


@register.filter
def is_condition(text: str) -> bool:
    """Return whether a text in a name filter has the operator of a search condition."""
    return bool(filter_words.OPERATOR.search(text))


@register.simple_tag(takes_context=True, name="query")
def query_string(context: Context, **changes: Any) -> str:
    """Return the page's query string with changes; None removes a key.

    ``_POLL_PARAMETERS`` are left out, so that links in a polled fragment are the same as on the
    whole page.
    """
    request = context["request"]
    own: dict[str, Any] | None = getattr(request, "own_parameters", None)
    if own is None:  # once a page: it has up to two hundred such links
        own = request.own_parameters = {
            key: [value for value in values if value or key in _CHOICES]
            for key, values in request.GET.lists()
            if key not in _POLL_PARAMETERS
        }
    present = {key: value for key, value in (own | changes).items() if value is not None}
    return f"?{urlencode(present, doseq=True)}"


@register.simple_tag(takes_context=True)
def events_query(context: Context) -> str:
    """Return the event filters as query string, for the URLs of exports."""
    query = context["request"].GET
    filters = {name: query[name] for name in EVENT_FILTERS if query.get(name)}
    return f"?{urlencode(filters)}" if filters else ""


@register.inclusion_tag("core/_cli_commands.html", takes_context=True, name="cli")
def cli_commands_of(context: Context, subject: StateMachine | Execution) -> dict[str, Any]:
    """Show the AWS CLI commands of a state machine or execution."""
    request = context["request"]
    scope = scope_of(request)
    if isinstance(subject, StateMachine):
        typed = context.get("input")
        text = typed if isinstance(typed, str) else "{}"
        return {"commands": cli_commands.machine_commands(request, scope, subject, text)}
    names = machine_name(subject), subject.name
    export, share, scenario = "", "", ""
    if has_feature("exports"):
        export = page_address(context, "execution-export", *names)
        if scope.may("SharePicture") and subject.imported_ms is None:
            share = page_address(context, "share", *names)
    if subject.stop_ms is not None and has_feature("test_state"):
        scenario = page_address(context, "execution-scenario", *names)
    return {
        "commands": cli_commands.execution_commands(request, scope, subject),
        "export": export,
        "scenario": scenario,
        "execution": subject,
        "share": share,
        "name": subject.name,
    }


@register.filter
def has_task_states(execution: Execution) -> bool:
    """Whether the definition of an execution has Task states. Some tests consist of calls only."""
    return '"Task"' in execution.definition.text


@register.simple_tag(takes_context=True)
def column_words(context: Context, table: str) -> list[tuple[str, str, bool]]:
    """Return key and label of a table's columns, and whether each is shown."""
    shown = context["columns"][table]
    return [(key, word, key in shown) for key, word in columns.TABLES[table].words.items()]


@register.simple_tag
def alarmed(machine: StateMachine) -> list[Any]:
    """Return the newest alarm in ALARM of a state machine, or nothing; its ``total`` counts all."""
    return [alarm for find in hooked(Hook.MACHINE_ALARMS) for alarm in find(machine)]


@register.filter
def attributes(values: Mapping[str, str] | None, prefix: str) -> SafeString:
    """Return a mapping as HTML attributes with ``prefix`` before each name; "" for None."""
    named = ((prefix, name, value) for name, value in (values or {}).items())
    return format_html_join(" ", '{}{}="{}"', named)


@register.filter
def without_url_secrets(text: str) -> str:
    """Return a text without the secrets in its URLs."""
    return redaction.without_url_secrets(text)


_STATUS_ICON = (
    '<svg class="status-icon" aria-hidden="true"><use href="#status-icon-{}"></use></svg>'
)
_STATUS = f'<span class="status {{}}">\n  {_STATUS_ICON}\n  {{}}\n</span>'
_BADGE = f'<span class="status {{}} badge" data-status="{{}}">\n  {_STATUS_ICON}\n  {{}}\n</span>'


@register.simple_tag(name="status_icon")
def status_icon_html(tone: str) -> SafeString:
    """Return the icon of a status; the caller must render its word next to it."""
    return format_html(_STATUS_ICON, tone)


@register.simple_tag(name="status")
def status_html(status: formatting.StatusLabel, *, badge: bool = False) -> SafeString:
    """Return a status as icon and word.

    Including a template for each row of a table would take ten times as long.
    """
    tone, word = escape(status.tone), escape(status.word)
    if badge:
        return SafeString(_BADGE.format(tone, word, tone, word))
    return SafeString(_STATUS.format(tone, tone, word))


@register.simple_tag(name="icon")
def icon_html(name: str, size: int = 16) -> SafeString:
    """Return a Lucide icon, hidden from screen readers."""
    return mark_safe(icon_svg(name, size))  # noqa: S308 - from the package's own files


@register.simple_tag(name="when")
def time_html(
    milliseconds: int | None,
    *,
    precise: bool = False,
    bare: bool = False,
    seconds: bool = True,
    relative: bool = False,
) -> SafeString:
    """Return a time as ``<time>`` in UTC; the page's script may show local time.

    ``bare``: without the zone, for columns whose heading names it. ``seconds``: False for moments
    that are stored to the minute. ``relative``: the script shows how long ago a moment of the last
    day was, and the moment on hover.
    """
    if milliseconds is None:
        return SafeString("-")
    flags = (" data-precise" if precise else "") + (" data-bare" if bare else "")
    flags += ("" if seconds else " data-minute") + (" data-relative" if relative else "")
    iso, zone = formatting.iso_text(milliseconds), "" if bare else " UTC"
    text = iso.rstrip("Z") if precise else iso[: _SECONDS if seconds else _MINUTES]
    # contains no user input, so it needs no escaping
    return SafeString(f'<time datetime="{iso}"{flags}>{text.replace("T", " ")}{zone}</time>')


_SECONDS, _MINUTES = len("2026-01-31T12:00:00"), len("2026-01-31T12:00")


@register.simple_tag
def time_of_day(milliseconds: int, day: str) -> SafeString:
    """Return a time under the heading of its day in UTC, without the date.

    The page's script changes the day if it differs in the reader's time zone.
    """
    return format_html(
        '<time datetime="{}" data-bare data-day="{}">{}</time>',
        formatting.iso_text(milliseconds),
        day,
        formatting.clock_text(milliseconds)[11:],
    )


@register.simple_tag(takes_context=True, name="event_row")
def event_row_html(context: Context, row: EventRow) -> SafeString:
    """Return a row of the event table, without its expanded part."""
    events: EventPage | None = context.get("events")
    return write_event_row(
        row,
        breakable_name_html(row.error) if row.error else "",
        time_html(row.at_ms, precise=True, bare=True),
        base=context["base"],
        query=context["rq"],
        marked=events is not None and row.id == events.filters.at,
    )


@register.filter(name="duration")
def duration_text(milliseconds: int | None) -> str:
    """Format a duration."""
    return "-" if milliseconds is None else formatting.duration_text(milliseconds)


@register.simple_tag(takes_context=True, name="since")
def duration_so_far(context: Context, milliseconds: int) -> SafeString:
    """Return the time since a moment, which the page's script keeps up to date.

    In the time machine and for an imported execution, return the fixed duration until the time that
    the page shows.
    """
    past: int | None = context.get("past_ms")
    execution: Execution | None = context.get("execution")
    if past is None and execution is not None and execution.imported_ms is not None:
        past = execution.stop_ms
    if past is not None:
        return format_html("{} so far", formatting.duration_text(past - milliseconds))
    return format_html('<span data-since="{}">{}</span>', milliseconds, time_ago(milliseconds))


@register.filter
def line_at(summary: InProgress, past_ms: int) -> str:
    """Return the text under a state that was in progress at a past time, with its duration."""
    return steps.line_at(summary, past_ms)


@register.filter
def one_line(text: str) -> str:
    """Return a text in one line, with control characters made visible."""
    return formatting.visible_text(" ".join(text.split()))


_UNITS = re.compile(r"(?<=\d) (?=(?:%|ms|s|min|h|d)(?!\w))")


@register.filter
def unbroken(text: str) -> str:
    """Keep numbers and their units together on a line: ``1 h``, ``20 %``."""
    return _UNITS.sub("\u00a0", text)


@register.filter(name="name")
def name_html(text: str) -> SafeString:
    """Show a name as it was typed: isolated, control characters made visible."""
    return SafeString(f"<bdi>{escape(formatting.visible_text(text))}</bdi>")


_SHORT_NAME = 24
_WORD_ENDS = re.compile(r"(?<=[._:/])(?=\w)|(?<=[a-z0-9])(?=[A-Z])")


@register.filter(name="breakable")
def breakable_name_html(text: str) -> SafeString:
    """Show a name that breaks between its words: ``Orders.<wbr>Too<wbr>Late``.

    A short name is not split, because columns are wide enough for it.
    """
    shown = formatting.visible_text(text)
    words = _WORD_ENDS.split(shown) if len(shown) > _SHORT_NAME else [shown]
    return SafeString(f"<bdi>{'<wbr>'.join(escape(word) for word in words)}</bdi>")


@register.filter(name="exact")
def exact_html(text: str) -> SafeString:
    """Escape a text so that a page holds it byte for byte: parsers turn CR LF into LF."""
    return mark_safe(escape(text).replace("\r", "&#13;"))  # noqa: S308 - escaped here


@register.filter(name="visible")
def visible_text(text: str | None) -> str:
    """Make control characters visible."""
    return formatting.visible_text(text or "")


@register.filter(name="resource")
def resource_name(arn: str) -> SafeString:
    """Return an ARN without region and account, which all ARNs here share."""
    parts = arn.split(":", 5)
    return name_html(parts[5] if len(parts) == 6 else arn)  # noqa: PLR2004 - arn:p:s:region:account:rest


@register.filter
def last_name(arn: str) -> str:
    """Return the name of the execution in an ARN."""
    return arn.split(":")[7] if arn.count(":") > 6 else arn  # noqa: PLR2004 - express ARNs are longer


@register.filter
def is_generated(name: str) -> bool:
    """Return whether the server generated a name, which readers need not see."""
    return _GENERATED.fullmatch(name) is not None


@register.filter(name="generated_name")
def short_generated_name(name: str) -> str:
    """Return the first part of a generated name, "" for a chosen one."""
    return f"{name[:8]}…" if is_generated(name) else ""


@register.filter
def machine_of_arn(arn: str) -> str:
    """Return the state machine's name in an execution's ARN, "" for other ARNs."""
    parts = arn.split(":")
    return parts[6] if len(parts) > 7 and parts[5] in {"execution", "express"} else ""  # noqa: PLR2004


@register.filter
def last_part(arn: str) -> str:
    """Return the part after the last colon of an ARN."""
    return arn.rpartition(":")[2]


@register.filter
def action_words(action: str) -> str:
    """Return an API action in words."""
    return formatting.action_words(action)


@register.filter
def redrive_refusal(execution: Execution) -> str:
    """Return why an execution cannot be redriven, "" if it can."""
    return redrive.api_refusal(execution)


@register.filter
def note_of(execution: Execution) -> ExecutionNote | None:
    """Return the note of an execution, None without one."""
    return getattr(execution, "note", None)


@register.filter
def pause_of(execution: Execution) -> Pause | None:
    """Return the pause of an execution, None without one."""
    return getattr(execution, "pause", None)


@register.filter
def halted_of(execution: Execution) -> HaltedExecution | None:
    """Return an execution's stops at breakpoints, None without any."""
    return getattr(execution, "halted", None)


@register.filter
def next_starts_of(machine: StateMachine) -> next_starts.NextStarts | None:
    """Return breakpoints and faults for the next starts of a state machine; makes no query."""
    return next_starts.next_starts_of(machine, clock.now_ms())


@register.filter
def next_starts_place(execution: Execution) -> next_starts.TakenPlace | None:
    """Return which of the next starts an execution was (2 of 5), None for another start."""
    return next_starts.place_of(execution)


@register.simple_tag
def next_starts_problem(machine: StateMachine) -> str:
    """Return why the breakpoints and faults for the next starts do not apply, "" if they do."""
    current = next_starts_of(machine)
    if current is None:
        return ""
    return next_starts.problem_of(current, machine.project.name, machine.definition_id)


@register.simple_tag
def edits_of_step(execution: Execution, state: str) -> list[debug_edits.ShownEdit]:
    """Return the changes that people made at a state; no query if there are none."""
    return debug_edits.shown_edits(execution, state)


@register.filter
def edited_states(execution: Execution) -> list[str]:
    """Return the names of the states at which people changed something, in alphabetical order."""
    return sorted({edit.row.state for edit in debug_edits.shown_edits(execution)})


@register.filter
def break_time(when: str) -> str:
    """Return when a breakpoint stops at a state (on entry, on exit), in words."""
    return formatting.BREAK_TIMES[when].lower()


@register.filter
def execution_status(status: str) -> formatting.StatusLabel:
    """Return tone and word of an execution's status."""
    return formatting.EXECUTION[status]


@register.filter
def machine_name(execution: Execution) -> str:
    """Return the name of an execution's state machine, even if deleted.

    A child of a Map Run belongs to ``machine/label``. URLs have ``machine~label``, because no name
    or label contains ``~``.
    """
    return execution.state_machine_arn.rpartition(":")[2].replace("/", "~")


@register.filter
def existing_machine(execution: Execution) -> str:
    """Return the name of the state machine of an execution or Map Run, "" if deleted."""
    if execution.map_run_id is None:
        return machine_name(execution) if execution.state_machine_id is not None else ""
    arn = execution.state_machine_arn.partition("/")[0]
    machines = StateMachine.objects.filter(arn=arn, project_id=execution.project_id)
    return machines.values_list("name", flat=True).first() or ""


register.filter(import_address)


@register.filter
def original_arn(execution: Execution) -> str:
    """Return the ARN of an imported execution where it ran, "" if unknown."""
    arn = execution.arn
    return arn if execution.imported_ms is None else arn.split(":", 2)[2]


@register.filter(name="has_feature")
def server_has_feature(feature: str) -> bool:
    """Whether this server has a feature."""
    return has_feature(feature)


@register.filter(name="ago")
def time_ago(milliseconds: int) -> str:
    """Format the time since a moment in whole seconds, rounded down."""
    return formatting.ticking_text(clock.now_ms() - milliseconds)


@register.filter(name="left")
def time_left(milliseconds: int) -> str:
    """Format the time until a moment in whole seconds, rounded up."""
    return formatting.ticking_text(milliseconds - clock.now_ms() + formatting.SECOND - 1)


@register.filter(name="lasted")
def execution_duration(execution: Execution) -> int | None:
    """Return how long an execution took, in milliseconds; None while it runs."""
    return None if execution.stop_ms is None else execution.stop_ms - execution.start_ms


@register.filter(name="pickable")
def is_pickable(moment: str) -> bool:
    """Whether a browser's datetime field can show a text: empty, or without a time zone."""
    return (
        not moment
        or re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,3})?)?", moment) is not None
    )


@register.filter(name="grouped")
def grouped_number(count: int) -> str:
    """Format a whole number with thousands separators."""
    return f"{count:,}"


@register.simple_tag
def box_parts(box: Box, plain: object) -> picture_svg.BoxParts:
    """Return the static SVG parts of a state's box. ``plain``: the picture shows no status."""
    return picture_svg.write_box(box, plain=bool(plain))


@register.simple_tag
def edge_lines(picture: Picture, taken: Collection[str]) -> SafeString:
    """Return the transitions of a picture. ``taken``: keys of the taken edges."""
    return picture_svg.write_lines(picture.lines, taken)


@register.filter(name="px")
def pixels(value: float, plus: float = 0) -> str:
    """Format a coordinate of a picture, shifted by ``plus``."""
    return f"{value + plus:.1f}"


@register.filter(name="get")
def value_of(values: Any, key: str) -> Any:
    """Return a dict's value of a key, None without one."""
    return values.get(key) if isinstance(values, Mapping) else None


def write_event_row(
    row: EventRow, error: str, moment: str, *, base: str, query: str, marked: bool
) -> SafeString:
    """Return the row of an event.

    ``error``, ``moment``: HTML of its error and its time. ``base``: the address of the execution;
    ``query``: the query string of its pages. ``marked``: whether the page shows this event.
    """
    step, resource = _isolate(row.step), _isolate(row.resource or "-")
    address = escape(f"{base}events/{row.id}/{query}")
    marks = ("current-event", ' tabindex="-1"') if marked else ("", "")
    after = "-" if row.after is None else f"+{row.after:,}"
    lines = f'<span class="event-error">{error}</span>' if error else ""
    lines += f'<span class="second-line">{step}</span>' if row.step else ""
    return SafeString(
        f'<tr id="e{row.id}" class="{" ".join(filter(None, (row.tone, marks[0])))}"{marks[1]}>'
        f'<td><a class="open" href="{address}" data-open="{row.id}"'
        f' aria-expanded="{"true" if row.detail else "false"}">{row.id}</a></td>'
        f'<td><span class="type"><span class="status-icon"></span>{escape(row.type)}</span>'
        f" {lines}</td>"
        f'<td class="secondary">{step}</td>'
        f'<td class="secondary muted mono event-resource{" given" if row.resource else ""}">'
        f"{resource}</td>"
        f'<td class="number">{row.elapsed:,}</td>'
        f'<td class="number secondary{"" if row.after else " muted"}">{after}</td>'
        f'<td class="secondary muted">{moment}</td></tr>'
    )


def _isolate(text: str) -> str:
    return f"<bdi>{escape(formatting.visible_text(text))}</bdi>"


_NAMESPACE = "{http://www.w3.org/2000/svg}"
_MOST = 512
"""The size of the cache of icons; the console has about 150, some in several sizes."""


@lru_cache(maxsize=_MOST)
def icon_svg(name: str, size: int) -> str:
    """Return an icon as an ``<svg>`` that screen readers skip.

    ``size``: pixels. Raise ``KeyError`` if the package has no icon of this name.
    """
    root = ET.fromstring(_archive().read(f"{name}.svg"))  # noqa: S314 - the package's own
    for element in root.iter():
        element.tag = str(element.tag).removeprefix(_NAMESPACE)
    root.set("width", str(size))
    root.set("height", str(size))
    root.set("aria-hidden", "true")
    return ET.tostring(root, encoding="unicode")


@cache
def _archive() -> ZipFile:
    return ZipFile(BytesIO(files("lucide").joinpath("lucide.zip").read_bytes()))
