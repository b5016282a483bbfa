"""View of the page *Sign-in*, on which administrators map groups of a provider to roles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.contrib import messages
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods

from console.db.branch_names import is_branch
from console.errors import ServiceError
from console.features.sign_in import following, groups
from console.features.sign_in.forms import GroupForm, RemovalForm
from console.features.sign_in.models import ADMINISTRATOR
from console.models import Project, Role
from console.web.core.scope import administrator_of, own_actor, render

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

_ROLES = [*Role.choices, (ADMINISTRATOR, "Administrator")]


@dataclass(frozen=True, slots=True)
class ProviderRow:
    """A provider with its numbers of people: followed, and updated at sign-in only."""

    provider_id: str
    name: str
    issuer: str
    followed: int
    others: int


@require_http_methods(["GET", "HEAD", "POST"])
def sign_in_page(request: HttpRequest) -> HttpResponse:
    """Show ``/sign-in/``; a POST adds a row to the table of groups or removes one."""
    if request.method != "POST":
        administrator_of(request, "PutGroupRole")
        return _render_page(request)
    number = RemovalForm(request.POST).values["remove"]
    return _remove_row(request, number) if number else _put_row(request)


def _put_row(request: HttpRequest) -> HttpResponse:
    user = administrator_of(request, "PutGroupRole")
    sent = GroupForm(request.POST).values
    try:
        groups.put_row(
            *(sent["provider"], sent["group"], sent["project"], sent["role"]), own_actor(user)
        )
    except ServiceError as error:
        return _render_page(request, 422, refused=error.message, sent=sent)
    where = sent["project"] or groups.SERVER
    messages.success(request, f"The group {sent['group']} is {sent['role']} of {where}.")
    return redirect("sign-in")


def _remove_row(request: HttpRequest, number: str) -> HttpResponse:
    user = administrator_of(request, "RemoveGroupRole")
    try:
        row = groups.remove_row(int(number) if number.isdecimal() else 0, own_actor(user))
    except ServiceError as error:
        return _render_page(request, 422, problem=error.message)
    where = row.project.name if row.project else groups.SERVER
    messages.success(request, f"The group {row.group} is {row.role} of {where} no more.")
    return redirect("sign-in")


def _render_page(request: HttpRequest, status: int = 200, **more: Any) -> HttpResponse:
    context = {
        "section": "sign-in",
        "rows": groups.list_rows(),
        "providers": _list_providers(),
        "silent_minutes": following.SILENT_MS // 60_000,
        "project_names": [
            name
            for name in Project.objects.order_by("name").values_list("name", flat=True)
            if not is_branch(name)
        ],
        "roles": _ROLES,
        "longest": groups.LONGEST_GROUP,
    }
    return render(request, "sign_in/page.html", {**context, **more}, status=status)


def _list_providers() -> list[ProviderRow]:
    counts = following.count_people()
    return [
        ProviderRow(
            *(provider_id, groups.provider_name(provider_id), provider["issuer"]),
            *counts.get(provider_id, (0, 0)),
        )
        for provider_id, provider in settings.STATEYARD_OIDC.items()
    ]
