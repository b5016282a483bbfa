"""Views of the server's audit, for administrators: entries that belong to no project."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.views.decorators.http import require_safe

from console.web.people.audit_views import AuditPlace, export_entries, show_entries

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

_SERVER = AuditPlace(None, "server-audit", "server-audit-csv")


@require_safe
def server_audit_page(request: HttpRequest) -> HttpResponse:
    """Show ``/server-audit/``: entries of the server, newest first."""
    return show_entries(request, _SERVER)


@require_safe
def server_audit_csv(request: HttpRequest) -> HttpResponse:
    """Return ``/server-audit.csv``: the latest filtered entries."""
    return export_entries(request, _SERVER)
