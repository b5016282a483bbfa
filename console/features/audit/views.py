"""Views of the audit trail of a project, or of the server: page and CSV."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from django.db.models import Max, Q, QuerySet
from django.http import HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

from console import execution_rights
from console.access import ANY_KEY
from console.db.audit import BY_APPROVAL_LINK, LONGEST_REASON, START_LINK
from console.masking.masked_execution import masks_of
from console.models import AuditEntry, Execution
from console.store.tasks.answers import APPROVED_WORD, REJECTED_WORD, read_answer
from console.web.core import formatting
from console.web.core.existing import existing_arns, has_page
from console.web.core.formatting import SECOND, iso_text, without_formula
from console.web.core.numbers import whole_number
from console.web.core.scope import render, scope_of
from console.web.search.moments import parse_moment, parse_period

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from django.http import HttpRequest

    from console.models import Project


_ROWS = 50
OFFERED = 10_000
"""The number of newest entries whose people and actions the filters offer."""
_START = "StartExecution"
BUT_STARTS = f"-{_START}"
"""The filter value for all actions except starts of executions, the most frequent entries."""
BY = {
    "": "Everything",
    "people": "By people and their programs",
    "server": "By rules, schedules and executions",
}
"""Kinds of actors. People's names have no blanks; actors of rules and schedules begin as below."""
_AUTOMATIC = (
    Q(execution__gt="")
    | Q(actor__in=("", "stateyard", "stepyard"))
    | Q(actor__startswith="rule ")
    | Q(actor__startswith="schedule ")
)
MOST_EXPORTED = 10_000
_NAMES = ("by", "who", "key", "act", "what", "from", "to")
_COLUMNS = ("time", "who", "action", "object", "reason", "from", "access key", "execution")
_LONGEST = 512
_MINUTE = len("2026-11-21T13:20")


@dataclass(frozen=True, slots=True)
class AuditPlace:
    """An audit trail and its URLs. ``project``: None for the server's.

    ``page`` and ``file``: names of the addresses of its page and of its CSV file; ``region``: of
    the page, "" if it has none.
    """

    project: Project | None
    page: str
    file: str
    region: str = ""


@require_safe
def audit_page(request: HttpRequest) -> HttpResponse:
    """Show ``/audit/``: recorded changes, newest first."""
    return show_entries(request, _place_of(request))


@require_safe
def audit_csv(request: HttpRequest) -> HttpResponse:
    """Return ``/audit.csv``: the latest filtered entries."""
    return export_entries(request, _place_of(request))


def _place_of(request: HttpRequest) -> AuditPlace:
    scope = scope_of(request)
    return AuditPlace(scope.project, "audit", "audit-csv", scope.region)


_SERVER = AuditPlace(None, "server-audit", "server-audit-csv")


@require_safe
def server_audit_page(request: HttpRequest) -> HttpResponse:
    """Show ``/server-audit/``, for administrators: entries of no project, newest first."""
    return show_entries(request, _SERVER)


@require_safe
def server_audit_csv(request: HttpRequest) -> HttpResponse:
    """Return ``/server-audit.csv``: the latest filtered entries."""
    return export_entries(request, _SERVER)


def show_entries(request: HttpRequest, place: AuditPlace) -> HttpResponse:
    """Show the page of an audit trail."""
    asked = _filter_values(request)
    project = place.project
    entries, problem = _asked_entries(project, asked)
    after = whole_number(request.GET.get("after", ""))
    if after:
        entries = entries.filter(pk__lt=after)
    rows = mask_reasons(project, entries.order_by("-pk")[: _ROWS + 1])
    region = {"region": place.region} if place.region else {}
    context = {
        "section": place.page,
        "address": place.page,
        "of_server": project is None,
        "entries": rows[:_ROWS],
        "days": group_days(rows[:_ROWS], linked=project is not None),
        "asked": asked,
        "filtered": any(asked.values()),
        "problem": problem,
        "older": rows[_ROWS - 1].pk if len(rows) > _ROWS else None,
        "newer": "after" in request.GET,
        "csv_address": f"{reverse(place.file)}?{urlencode({**asked, **region})}",
        "most": MOST_EXPORTED,
        "by_choices": BY,
        "but_starts": BUT_STARTS,
        "actions": _filter_choices(project, "action", asked["act"]),
        "actors": _filter_choices(project, "actor", asked["who"]),
    }
    return render(request, "audit/page.html", context, status=422 if problem else 200)


def export_entries(request: HttpRequest, place: AuditPlace) -> HttpResponse:
    """Return the CSV file of an audit trail."""
    entries, problem = _asked_entries(place.project, _filter_values(request))
    if problem:
        return HttpResponse(problem, status=422, content_type="text/plain; charset=utf-8")
    headers = {
        "Cache-Control": "no-store",
        "Content-Disposition": f'attachment; filename="{place.page}.csv"',
    }
    response = HttpResponse(content_type="text/csv; charset=utf-8", headers=headers)
    rows = csv.writer(response)
    rows.writerow(_COLUMNS)
    for entry in mask_reasons(place.project, entries.order_by("-pk")[:MOST_EXPORTED]):
        row = audit_row(entry)
        texts = (entry.actor, entry.action, entry.target, entry.reason, row.origin, entry.key_id)
        cells = (without_formula(text) for text in (*texts, entry.execution or ""))
        rows.writerow([iso_text(entry.at_ms), *cells])
    return response


def _filter_values(request: HttpRequest) -> dict[str, str]:
    """Return the filter values; unknown kinds of actors are ignored."""
    asked = {name: request.GET.get(name, "").strip()[:_LONGEST] for name in _NAMES}
    return asked | {"by": asked["by"] if asked["by"] in BY else ""}


def _asked_entries(
    project: Project | None, asked: dict[str, str]
) -> tuple[QuerySet[AuditEntry], str]:
    """Return the filtered entries, and the filters' error, "" without one."""
    entries = _entries(project, asked)
    try:
        return _filter_period(entries, asked["from"], asked["to"]), ""
    except ValueError as wrong:
        return entries.none(), str(wrong)


def _entries(project: Project | None, asked: dict[str, str]) -> QuerySet[AuditEntry]:
    entries = AuditEntry.objects.filter(project=project)
    if asked["by"] == "people":
        entries = entries.exclude(_AUTOMATIC)
    elif asked["by"] == "server":
        entries = entries.filter(_AUTOMATIC)
    if asked["who"]:
        entries = entries.filter(actor=asked["who"])
    if asked["key"]:
        entries = entries.filter(key_id=asked["key"])
    if asked["act"] == BUT_STARTS:
        entries = entries.exclude(action=_START)
    elif asked["act"]:
        entries = entries.filter(action=asked["act"])
    if not asked["what"]:
        return entries
    if asked["what"].startswith("arn:") and _is_target(project, asked["what"]):
        return entries.filter(target=asked["what"])
    return entries.filter(target__icontains=asked["what"])


def _is_target(project: Project | None, arn: str) -> bool:
    """Whether an ARN is complete: then it is not used as a prefix.

    Entries of starts are excluded, because the index of targets does not have them.
    """
    rows = AuditEntry.objects.filter(project=project, target=arn)
    return rows.exclude(action=_START).exists()


def _filter_period(entries: QuerySet[AuditEntry], since: str, until: str) -> QuerySet[AuditEntry]:
    """Filter by a period; raise ValueError. A minute counts whole."""
    if since:
        entries = entries.filter(at_ms__gte=parse_moment(since))
    if until:
        period = parse_period(until)
        whole = 60 * SECOND if len(until) == _MINUTE else SECOND
        end_ms = parse_moment(until) + whole if period is None else period.end_ms
        entries = entries.filter(at_ms__lt=end_ms)
    return entries


def _filter_choices(project: Project | None, field: str, chosen: str) -> list[str]:
    """Return the values of a field in the latest entries, and the selected one."""
    newest = AuditEntry.objects.aggregate(newest=Max("pk"))["newest"] or 0
    rows = AuditEntry.objects.filter(project=project, pk__gt=newest - OFFERED).order_by()
    values = set(rows.values_list(field, flat=True).distinct())
    return sorted({*values, chosen} - {"", BUT_STARTS})


_KINDS = {
    "stateMachine": "State machine",
    "execution": "Execution",
    "express": "Execution",
    "activity": "Activity",
    "mapRun": "Map Run",
    "rule": "Rule",
    "schedule": "Schedule",
    "schedule-group": "Schedule group",
    "log-group": "Log group",
    "alarm": "Alarm",
}
_ARN_PARTS = 6
_BULK = "bulk/"
_MASKED_AT_ONCE = 200
_EXECUTIONS: QuerySet[Execution] = QuerySet(Execution)  # imported ones, too


@dataclass(frozen=True, slots=True)
class AuditRow:
    """An audit entry for display.

    ``kind`` and ``name``: those of the object; ``owner``: what the object belongs to, as the state
    machine of an execution. ``origin``: where the act came from; ``detail``: which one; ``job``:
    the number of a bulk job. ``rule``: the name of the rule, ``schedule``: group and name of the
    schedule that did it. ``linked``: the object has a page; ``deleted``: it had one. ``by_linked``:
    the execution that did it has one.
    """

    entry: AuditEntry
    act: str
    kind: str
    name: str
    owner: str
    origin: str
    detail: str = ""
    job: int | None = None
    rule: str = ""
    schedule: tuple[str, ...] = ()
    linked: bool = False
    deleted: bool = False
    by_linked: bool = False

    @property
    def reason(self) -> str:
        """Return the reason; for the targets of a rule, their names."""
        _, reason = read_answer(self.entry.action, self.entry.reason)
        if not reason or self.entry.action not in ("events:PutTargets", "events:RemoveTargets"):
            return reason
        return f"Target{'s' if ', ' in reason else ''} {reason}"


def audit_row(entry: AuditEntry, existing: Collection[str] | None = ()) -> AuditRow:
    """Return an entry in words.

    ``existing``: the ARNs whose objects are still there, None if the row does not say so.
    """
    kind, name, owner = _object_of(entry.target)
    origin, detail, job = _origin_of(entry)
    answer, _ = read_answer(entry.action, entry.reason)
    act = _ANSWERS.get(answer) or formatting.action_words(entry.action)
    rule, schedule = _rule_of(entry.actor)
    linked = existing is not None and entry.target in existing
    return AuditRow(
        *(entry, act, kind, name, owner, origin, detail, job, rule, schedule),
        linked=linked,
        deleted=existing is not None and not linked and has_page(entry.target),
        by_linked=existing is not None and entry.execution in existing,
    )


_ANSWERS = {
    APPROVED_WORD: "Approve task",
    REJECTED_WORD: "Reject task",
}
"""The action of a person -> its words: the API has the same calls for people and programs."""


def _rule_of(actor: str) -> tuple[str, tuple[str, ...]]:
    """Return the rule or schedule that acted: people's names have no blanks."""
    kind, blank, name = actor.partition(execution_rights.BY_EVENT)[0].partition(" ")
    if blank and kind == "schedule" and "/" in name:
        return "", tuple(name.split("/", 1))
    return (name if blank and kind == "rule" else ""), ()


def _object_of(target: str) -> tuple[str, str, str]:
    """Return kind, name and owner of a target."""
    parts = target.split(":", _ARN_PARTS - 1)
    if not target.startswith("arn:") or len(parts) < _ARN_PARTS:
        return "", target, ""
    kind, names = re.split("[:/]", parts[-1] + ":", maxsplit=1)
    if kind not in _KINDS:
        return "", parts[-1], ""
    names = names.removesuffix(":")
    if kind in {"execution", "express"} and ":" in names:
        machine, _, name = names.partition(":")
        return _KINDS[kind], name.partition(":")[0], machine
    return _KINDS[kind], names, ""


def _origin_of(entry: AuditEntry) -> tuple[str, str, int | None]:
    """Return an action's origin, its name, and its bulk job's number."""
    if entry.execution:
        return "Execution", "", None
    if entry.key_id == ANY_KEY:
        return "API, key not checked", "", None
    if entry.key_id:
        return "API", entry.key_id, None
    if entry.request_id.startswith(_BULK):
        return "Bulk job", "", int(entry.request_id.removeprefix(_BULK))
    return ("Console" if entry.request_id else _origin_of_actor(entry)), "", None


def _origin_of_actor(entry: AuditEntry) -> str:
    """Return the origin of an action without a member's request, from its actor.

    The names of people have no blanks, so that none of them looks like a link.
    """
    if entry.actor.startswith(START_LINK) and entry.action == "StartExecution":
        return "Start link"
    if BY_APPROVAL_LINK in entry.actor:
        return "Approval link"
    return "Command line" if entry.actor == "manage.py" else "Server"


def mask_reasons(project: Project | None, entries: Iterable[AuditEntry]) -> list[AuditEntry]:
    """Return entries with masked reasons: people may quote masked values.

    The entries are never saved.
    """
    every = list(entries)
    if project is None:
        return every
    explained = [entry for entry in every if entry.reason] if project.masked else []
    for at in range(0, len(explained), _MASKED_AT_ONCE):
        chunk = explained[at : at + _MASKED_AT_ONCE]
        arns = {entry.target for entry in chunk}
        rows = _EXECUTIONS.filter(project=project, arn__in=arns).values_list("pk", "arn")
        arn_by_number = dict(rows)
        for number, mask in masks_of(project, list(arn_by_number)).items():
            for entry in chunk:
                if entry.target == arn_by_number[number]:
                    entry.reason = mask.cut_words(entry.reason, LONGEST_REASON)
    return every


@dataclass(frozen=True, slots=True)
class AuditDay:
    """The rows of one day in UTC, newest first. ``day``: such as ``2026-11-23``."""

    day: str
    rows: list[AuditRow]


def group_days(entries: Iterable[AuditEntry], *, linked: bool = True) -> list[AuditDay]:
    """Group entries by day; their order stays.

    ``linked``: rows say whether their objects exist. Not in the audit of the server: that would
    tell administrators about objects in projects of others.
    """
    every = list(entries)
    existing = None
    if linked:
        existing = existing_arns(arn for entry in every for arn in (entry.target, entry.execution))
    days = groupby(every, lambda entry: formatting.clock_text(entry.at_ms)[:10])
    return [AuditDay(day, [audit_row(entry, existing) for entry in of_day]) for day, of_day in days]
