"""Answer the page Sign-in, on which administrators of the server keep the table of groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import get_user_model
from django.core.exceptions import PermissionDenied
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods

from console import access
from console.config import logging_setup
from console.db import audit
from console.db.branch_names import is_branch
from console.errors import ServiceError
from console.features.sign_in import following, groups
from console.features.sign_in.forms import GroupForm, RemovalForm
from console.features.sign_in.models import ADMINISTRATOR
from console.models import Project, Role
from console.web.core.scope import render

if TYPE_CHECKING:
    from django.contrib.auth.models import User
    from django.http import HttpRequest, HttpResponse

_ROLES = [*Role.choices, (ADMINISTRATOR, "Administrator")]


@dataclass(frozen=True, slots=True)
class ProviderRow:
    """A provider with the numbers of its people: followed, and asked about at sign-in only."""

    provider_id: str
    name: str
    issuer: str
    followed: int
    others: int


@require_http_methods(["GET", "HEAD", "POST"])
def sign_in_page(request: HttpRequest) -> HttpResponse:
    """Answer ``/sign-in/``; a POST adds a row to the table of groups or removes one."""
    if request.method != "POST":
        _administrator(request, "PutGroupRole")
        return _render_page(request)
    number = RemovalForm(request.POST).values["remove"]
    return _remove_row(request, number) if number else _put_row(request)


def _put_row(request: HttpRequest) -> HttpResponse:
    user = _administrator(request, "PutGroupRole")
    sent = GroupForm(request.POST).values
    try:
        groups.put_row(
            *(sent["provider"], sent["group"], sent["project"], sent["role"]), _actor(user)
        )
    except ServiceError as error:
        return _render_page(request, 422, refused=error.message, sent=sent)
    where = sent["project"] or groups.SERVER
    messages.success(request, f"The group {sent['group']} is {sent['role']} of {where}.")
    return redirect("sign-in")


def _remove_row(request: HttpRequest, number: str) -> HttpResponse:
    user = _administrator(request, "RemoveGroupRole")
    try:
        row = groups.remove_row(int(number) if number.isdecimal() else 0, _actor(user))
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


def _administrator(request: HttpRequest, action: str) -> User:
    """Return the reader; raise ``PermissionDenied`` unless they may administer so."""
    user = request.user
    if not isinstance(user, get_user_model()) or not access.may_administer(user, action):
        raise PermissionDenied(f"Only an administrator of the server may do this: {action}.")
    return user


def _actor(user: User) -> audit.Actor:
    return audit.Actor(user.get_username(), request_id=logging_setup.request_id())
