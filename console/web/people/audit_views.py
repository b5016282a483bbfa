"""Views of the audit trail of a project, or of the server: page and CSV."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from django.db.models import Max, Q
from django.http import HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

from console.config import former_name
from console.models import AuditEntry
from console.web.core.formatting import SECOND, iso_text, without_formula
from console.web.core.numbers import whole_number
from console.web.core.scope import render, scope_of
from console.web.people.audit_rows import audit_row, group_days, mask_reasons
from console.web.search.moments import parse_moment, parse_period

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from django.http import HttpRequest

    from console.models import Project

_ROWS = 50
OFFERED = 10_000
"""Among how many of the newest entries the people and actions to choose from are looked for."""
_START = "StartExecution"
BUT_STARTS = f"-{_START}"
"""The choice of every action but the start of executions, which most entries are."""
BY = {
    "": "Everything",
    "people": "By people and their programs",
    "server": "By rules, schedules and executions",
}
"""Who acted. The names of people have no blanks; those of rules and schedules begin as below."""
_AUTOMATIC = (
    Q(execution__gt="")
    | Q(actor__in=("", "stateyard", former_name.FORMER))
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


def show_entries(request: HttpRequest, place: AuditPlace) -> HttpResponse:
    """Show the page of an audit trail."""
    asked = _asked(request)
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
        "actions": _offered(project, "action", asked["act"]),
        "actors": _offered(project, "actor", asked["who"]),
    }
    return render(request, "people/audit.html", context, status=422 if problem else 200)


def export_entries(request: HttpRequest, place: AuditPlace) -> HttpResponse:
    """Return the CSV file of an audit trail."""
    entries, problem = _asked_entries(place.project, _asked(request))
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


def _asked(request: HttpRequest) -> dict[str, str]:
    """Return the filter values; unknown kinds of actors are ignored."""
    asked = {name: request.GET.get(name, "").strip()[:_LONGEST] for name in _NAMES}
    return asked | {"by": asked["by"] if asked["by"] in BY else ""}


def _asked_entries(
    project: Project | None, asked: dict[str, str]
) -> tuple[QuerySet[AuditEntry], str]:
    """Return the filtered entries, and the filters' error, "" without one."""
    entries = _entries(project, asked)
    try:
        return _between(entries, asked["from"], asked["to"]), ""
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

    The index of targets has no starts.
    """
    rows = AuditEntry.objects.filter(project=project, target=arn)
    return rows.exclude(action=_START).exists()


def _between(entries: QuerySet[AuditEntry], since: str, until: str) -> QuerySet[AuditEntry]:
    """Filter by a period; raise ValueError. A minute counts whole."""
    if since:
        entries = entries.filter(at_ms__gte=parse_moment(since))
    if until:
        period = parse_period(until)
        whole = 60 * SECOND if len(until) == _MINUTE else SECOND
        end_ms = parse_moment(until) + whole if period is None else period.end_ms
        entries = entries.filter(at_ms__lt=end_ms)
    return entries


def _offered(project: Project | None, field: str, chosen: str) -> list[str]:
    """Return the values of a field in the latest entries, and the selected one."""
    newest = AuditEntry.objects.aggregate(newest=Max("pk"))["newest"] or 0
    rows = AuditEntry.objects.filter(project=project, pk__gt=newest - OFFERED).order_by()
    values = set(rows.values_list(field, flat=True).distinct())
    return sorted({*values, chosen} - {"", BUT_STARTS})
