"""Answer the audit trail of a project."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db.models import Max
from django.views.decorators.http import require_safe

from console.models import AuditEntry
from console.web.core.formatting import SECOND
from console.web.core.numbers import whole_number
from console.web.core.scope import render, scope_of
from console.web.people.audit_rows import group_days
from console.web.search.moments import parse_moment

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from django.http import HttpRequest, HttpResponse

    from console.models import Project

_ROWS = 50
OFFERED = 10_000
"""Among how many of the newest entries the people and actions to choose from are looked for."""
BUT_STARTS = "-StartExecution"
"""The choice of every action but the start of executions, which most entries are."""
_MINUTE = len("2026-11-21T13:20")


@require_safe
def audit_page(request: HttpRequest) -> HttpResponse:
    """Answer ``/audit/``: who did what to what, newest first."""
    scope = scope_of(request)
    names = ("who", "act", "what", "from", "to")
    asked = {name: request.GET.get(name, "").strip()[:200] for name in names}
    problem, entries = "", _entries(scope.project, asked)
    try:
        entries = _between(entries, asked["from"], asked["to"])
    except ValueError as wrong:
        problem, entries = str(wrong), entries.none()
    after = whole_number(request.GET.get("after", ""))
    if after:
        entries = entries.filter(pk__lt=after)
    rows = list(entries.order_by("-pk")[: _ROWS + 1])
    context = {
        "section": "audit",
        "entries": rows[:_ROWS],
        "days": group_days(rows[:_ROWS]),
        "asked": asked,
        "filtered": any(asked.values()),
        "problem": problem,
        "older": rows[_ROWS - 1].pk if len(rows) > _ROWS else None,
        "newer": "after" in request.GET,
        "but_starts": BUT_STARTS,
        "actions": _offered(scope.project, "action", asked["act"]),
        "actors": _offered(scope.project, "actor", asked["who"]),
    }
    return render(request, "people/audit.html", context, status=422 if problem else 200)


def _entries(project: Project, asked: dict[str, str]) -> QuerySet[AuditEntry]:
    entries = AuditEntry.objects.filter(project=project)
    if asked["who"]:
        entries = entries.filter(actor=asked["who"])
    if asked["act"] == BUT_STARTS:
        entries = entries.exclude(action=BUT_STARTS.removeprefix("-"))
    elif asked["act"]:
        entries = entries.filter(action=asked["act"])
    return entries.filter(target__contains=asked["what"]) if asked["what"] else entries


def _between(entries: QuerySet[AuditEntry], since: str, until: str) -> QuerySet[AuditEntry]:
    """Keep what happened from one moment to another; raise ValueError. A minute is whole."""
    if since:
        entries = entries.filter(at_ms__gte=parse_moment(since))
    if until:
        whole = 60 * SECOND if len(until) == _MINUTE else SECOND
        entries = entries.filter(at_ms__lt=parse_moment(until) + whole)
    return entries


def _offered(project: Project, field: str, chosen: str) -> list[str]:
    """Return the values of a field in the newest entries, and the one that is chosen."""
    newest = AuditEntry.objects.aggregate(newest=Max("pk"))["newest"] or 0
    rows = AuditEntry.objects.filter(project=project, pk__gt=newest - OFFERED).order_by()
    values = set(rows.values_list(field, flat=True).distinct())
    return sorted({*values, chosen} - {"", BUT_STARTS})
