"""Build the parts of the Map Run page: counts, progress bar and settings."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.core.exceptions import ValidationError
from django.http import Http404
from django.urls import reverse

from console.models import MapRun, TaskRow
from console.statuses import ExecutionStatus, MapRunStatus
from console.store.executions import redrive
from console.store.map_runs import map_counts, map_items
from console.web.core import formatting
from console.web.core.forms import PageForm, TextField

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.db.models import Manager

    from console.web.core.scope import Scope

MOST_BATCHES = 1_000
"""Up to how many children their batches are read to count the items in them."""
_UNREAD = ("input", "output", "cause", "error", "trace_header")
_ROWS = (
    ("pending", "idle", "Pending", ""),
    ("running", "running", "Running", ExecutionStatus.RUNNING),
    ("pending_redrive", "idle", "Pending redrive", ""),
    ("succeeded", "succeeded", "Succeeded", ExecutionStatus.SUCCEEDED),
    ("failed", "failed", "Failed", ExecutionStatus.FAILED),
    ("timed_out", "failed", "Timed out", ExecutionStatus.TIMED_OUT),
    ("aborted", "aborted", "Aborted", ExecutionStatus.ABORTED),
)
_NEVER_STARTED = ("pending", "idle", "Never started", "")
"""The words for the API's *pending* children of a Map Run that has ended."""


# -- finding it ------------------------------------------------------------------------------------


def find_map_run(scope: Scope, machine: str, execution: str, task: int) -> MapRun:
    """Return the Map Run started by an execution's task; raise ``Http404``.

    Its parent is only half read: no payload of it is on the page.
    """
    owner = machine.replace("~", "/")
    parents = (scope.arn("execution", owner, execution), scope.express_child_arn(owner, execution))
    rows = MapRun.objects.select_related("parent__definition", "parent__state_machine")
    rows = rows.defer(*(f"parent__{name}" for name in _UNREAD))
    run = rows.filter(parent__project=scope.project, parent__arn__in=parents, task=task).first()
    if run is None:
        raise Http404(f"“{execution}” has no Map Run {task}.")
    run.parent.project = scope.project
    return run


def map_run_address(scope: Scope, arn: str) -> str:
    """Return the URL of a Map Run of this project, "" for another ARN; raise ``Http404``."""
    if ":mapRun:" not in arn:
        return ""
    rows = MapRun.objects.filter(arn=arn, parent__project=scope.project)
    parent = rows.values_list("parent__state_machine_arn", "parent__name", "task").first()
    if parent is None:
        raise Http404(f"There is no Map Run “{arn}”.")
    machine = parent[0].rpartition(":")[2].replace("/", "~")
    return f"{reverse('map-run', args=[machine, *parent[1:]])}?region={arn.split(':')[3]}"


def map_runs_with_arns() -> dict[str, Manager[MapRun]]:
    """Return kind of ARN -> manager of the Map Runs."""
    return {"mapRun": MapRun.objects}


def state_name(run: MapRun) -> str:
    """Return the name of the Map state that started it."""
    row = TaskRow.objects.filter(execution_id=run.parent_id, task=run.task)
    return row.values_list("state", flat=True).first() or ""


# -- counts ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ChildCount:
    """One line of the counts. ``key``: the status for the filter, "" without one.

    ``items``: None where they were too many to count.
    """

    status: formatting.StatusLabel
    key: str
    executions: int
    items: int | None


@dataclass(frozen=True, slots=True)
class BarSegment:
    """A part of the bar of children. ``start``, ``share``: percent of all children."""

    tone: str
    word: str
    count: int
    start: float
    share: float


def _segments(counts: list[ChildCount], total: int) -> list[BarSegment]:
    """Return the progress bar by status, failed children first."""
    order = {"failed": 0, "aborted": 1, "succeeded": 2, "running": 3}
    shown_counts = sorted(
        (count for count in counts if count.executions and count.status.tone in order),
        key=lambda count: order[count.status.tone],
    )
    segments: list[BarSegment] = []
    start = 0.0
    for count in shown_counts:
        share = 100 * count.executions / max(total, 1)
        status = count.status
        segments.append(BarSegment(status.tone, status.word, count.executions, start, share))
        start += share
    return segments


def count_children(run: MapRun) -> dict[str, Any]:
    """Return the counts, and whether they are final."""
    children = map_counts.count_executions(run)
    items = None
    if children.total <= MOST_BATCHES or not map_items.makes_batches(run):
        items = map_counts.count_items(run, children)
    running = run.status == MapRunStatus.RUNNING
    rows = _ROWS if running else (_NEVER_STARTED, *_ROWS[1:])
    return {
        "counts": (counts := [_count_of(*row, children, items) for row in rows]),
        "segments": _segments(counts, children.total),
        "of_children": children,
        "of_items": items,
        "over": not running and not children.running,
    }


def _count_of(
    name: str,
    tone: str,
    word: str,
    key: str,
    children: map_counts.Counts,
    items: map_counts.Counts | None,
) -> ChildCount:
    number = getattr(children, name)
    status = formatting.StatusLabel(tone if number else "idle", word)
    return ChildCount(status, key, number, None if items is None else getattr(items, name))


def page_stamp(context: Mapping[str, Any]) -> str:
    """Return a stamp that changes with the page's content."""
    run, rows = context["run"], context["children"].rows
    parts = (
        context["of_children"],
        (run.status, run.reading, run.parent.status, context["pace"]),
        [(row.pk, status.word, row.redrive_count) for row, status, _ in rows],
    )
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


# -- acting ----------------------------------------------------------------------------------------


def redrive_refusal(run: MapRun) -> str:
    """Return why a redrive cannot continue a failed Map Run, "" if it can.

    A Map Run continues when the execution that started it is redriven.
    """
    if run.parent.map_run_id is not None:
        return "Its execution is a child of a Map Run; redrive the parent"
    return redrive.redrive_refusal(run.parent)


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting of UpdateMapRun. ``limit``: its maximum."""

    name: str
    word: str
    hint: str
    limit: float
    whole: bool = True


SETTINGS = (
    Setting(
        "max_concurrency",
        "Concurrency",
        "Maximum child executions at the same time; 0 for no limit.",
        2**31 - 1,
    ),
    Setting("tolerated_count", "Tolerated failures", "A number of children.", 2**31 - 1),
    Setting("tolerated_percentage", "Tolerated failures (%)", "Of all children.", 100, whole=False),
)


@dataclass(frozen=True, slots=True)
class Field:
    """A setting with its form value and validation error."""

    setting: Setting
    text: str
    problem: str = ""


def setting_fields(run: MapRun) -> list[Field]:
    """Return the current settings as fields."""
    return [Field(setting, _text(getattr(run, setting.name))) for setting in SETTINGS]


def _text(value: float | None) -> str:
    return "" if value is None else f"{value:.15g}"


class SettingsForm(PageForm):
    """The settings of UpdateMapRun; an empty field leaves its setting unchanged."""

    def __init__(self, sent: Mapping[str, Any]) -> None:
        super().__init__(sent)
        self.fields = {setting.name: _SettingField(setting) for setting in SETTINGS}


class _SettingField(TextField):
    def __init__(self, setting: Setting) -> None:
        super().__init__()
        self._setting = setting

    def validate(self, value: str) -> None:
        """Raise ``ValidationError`` for an invalid number."""
        super().validate(value)
        if problem := _problem(self._setting, value):
            raise ValidationError(problem)


def read_settings(run: MapRun, form: SettingsForm) -> tuple[list[Field], dict[str, float]]:
    """Read the form; return its fields as typed, and the changed settings."""
    fields, changes = [], {}
    for setting in SETTINGS:
        text = form.texts[setting.name]
        problem = "".join(str(error) for error in form.errors.get(setting.name, ()))
        fields.append(Field(setting, text[:40], problem))
        if text and not problem:
            value = int(text) if setting.whole else float(text)
            if value != getattr(run, setting.name):
                changes[setting.name] = value
    return fields, changes


def _problem(setting: Setting, text: str) -> str:
    """Return the error in a number; an empty field leaves the setting unchanged."""
    form = r"\d{1,10}" if setting.whole else r"\d{1,3}(\.\d{1,6})?"
    if not text or (re.fullmatch(form, text, re.ASCII) and float(text) <= setting.limit):
        return ""
    kind = "a whole number" if setting.whole else "a number"
    return f"“{formatting.visible_text(text[:40])}” is not {kind} from 0 to {setting.limit:,}."
