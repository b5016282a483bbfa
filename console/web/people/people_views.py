"""Answer the members of a project and its access keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.db.models import Count, Max, Q
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from console.config.client_profile import profile_text
from console.db import clock
from console.errors import ServiceError
from console.models import AccessKey, Membership, Role
from console.store.people import invitations
from console.store.people import people as store
from console.web.core.formatting import DAY
from console.web.core.scope import Scope, actor_of, render, require, scope_of
from console.web.people.forms import (
    HOURS,
    InvitationForm,
    KeyForm,
    MemberForm,
    NewKeyForm,
    RemoveMemberForm,
)

if TYPE_CHECKING:
    from django.contrib.auth.models import User
    from django.http import HttpRequest, HttpResponse

IDLE_DAYS = 90
"""A key that was not used for so many days is pointed out."""


@require_http_methods(["GET", "POST"])
def team_page(request: HttpRequest) -> HttpResponse:
    """Answer ``/team/``: the members; an owner adds them and changes roles."""
    scope = scope_of(request)
    if request.method != "POST":
        return _render_team(request, scope)
    require(scope, "PutMember")
    sent = MemberForm(request.POST).values
    name, role = sent["name"], sent["role"]
    try:
        store.put_member(scope.project, name, role, actor_of(scope), scope.principal.user)
    except ServiceError as refused:
        return _render_team(request, scope, 422, problem=refused.message)
    messages.success(request, f"{name} is {role} now.")
    return redirect("team")


def _render_team(
    request: HttpRequest, scope: Scope, status: int = 200, **more: Any
) -> HttpResponse:
    members = _member_rows(scope)
    context = {
        "section": "team",
        "members": members,
        "only_owner": _only_owner(members),
        "roles": Role.choices,
        "hours": HOURS,
        "invitations": invitations.open_ones(scope.project) if scope.may("PutMember") else (),
    }
    return render(request, "people/team.html", {**context, **more}, status=status)


@require_http_methods(["GET", "HEAD", "POST"])
def invite_member(request: HttpRequest) -> HttpResponse:
    """Make an invitation, and show its link this once; its address alone leads to the team."""
    scope = scope_of(request)
    require(scope, "CreateInvitation")
    if request.method != "POST":
        return redirect("team")
    sent = InvitationForm(request.POST).values
    hours: int = sent["hours"]
    try:
        made, token = invitations.create_invitation(
            scope.project, sent["name"], sent["role"], hours, actor_of(scope), scope.principal.user
        )
    except ServiceError as refused:
        return _render_team(request, scope, 422, refused=refused.message, invited=sent)
    link = request.build_absolute_uri(reverse("invitation", args=[token]))
    return _render_team(request, scope, made=made, link=link, lasts=HOURS[hours])


@require_POST
def revoke_invitation(request: HttpRequest, number: int) -> HttpResponse:
    """Revoke an open invitation."""
    scope = scope_of(request)
    require(scope, "RevokeInvitation")
    try:
        invitation = invitations.revoke_invitation(
            scope.project, number, actor_of(scope), scope.principal.user
        )
    except ServiceError as refused:
        messages.error(request, refused.message)
    else:
        messages.success(request, f"The invitation of {invitation.name} was revoked.")
    return redirect("team")


def _member_rows(scope: Scope) -> list[Any]:
    keys = Q(user__accesskey__project=scope.project)
    members = Membership.objects.filter(project=scope.project).select_related("user")
    return list(
        members.annotate(
            keys=Count("user__accesskey", filter=keys & Q(user__accesskey__disabled_ms=None)),
            used_ms=Max("user__accesskey__last_used_ms", filter=keys),
        ).order_by("user__username")
    )


def _only_owner(members: list[Membership]) -> Membership | None:
    """Return the member whom the store neither removes nor gives another role."""
    owners = [each for each in members if each.role == Role.OWNER and each.user.is_active]
    return owners[0] if len(owners) == 1 else None


@require_POST
def remove_member(request: HttpRequest) -> HttpResponse:
    """Remove a member."""
    scope = scope_of(request)
    require(scope, "RemoveMember")
    name = RemoveMemberForm(request.POST).values["name"]
    try:
        store.remove_member(scope.project, name, actor_of(scope), scope.principal.user)
    except ServiceError as refused:
        messages.error(request, refused.message)
    else:
        messages.success(request, f"{name} was removed; their keys are deleted.")
    return redirect("team")


def _profile_lines(key_id: str, secret: str, address: str, region: str) -> str:
    """Return what a person puts into a credentials file, with the secret at its end."""
    lines = profile_text(key_id, secret, address=address, region=region).splitlines()
    return "\n".join(sorted(lines, key=lambda line: line.endswith(secret)))


def _service_accounts(scope: Scope) -> list[User]:
    """Return the members whose keys an owner makes: programs, and not the owner."""
    if not scope.may("PutMember"):
        return []
    accounts = store.service_accounts(scope.project)
    return [user for user in accounts if user.pk != scope.principal.user.pk]


def _create_key(scope: Scope, member: str, description: str) -> tuple[AccessKey, str]:
    """Make a key of a service account, or one's own where none is named."""
    user, actor = scope.principal.user, actor_of(scope)
    if member:
        return store.new_key_of_service_account(member, scope.project, actor, user, description)
    return store.new_key(user, scope.project, actor, description=description)


@require_http_methods(["GET", "POST"])
def keys_page(request: HttpRequest) -> HttpResponse:
    """Answer ``/keys/``: one's own access keys, and everybody's for an owner."""
    scope = scope_of(request)
    address = request.build_absolute_uri("/").rstrip("/")
    made = problem = ""
    sent = NewKeyForm(request.POST).values
    if request.method == "POST":
        if sent["member"]:
            require(scope, "PutMember")
        try:
            key, secret = _create_key(scope, sent["member"], sent["description"])
            made = _profile_lines(key.key_id, secret, address, scope.region)
        except ServiceError as refused:
            problem = refused.message
    rows = AccessKey.objects.filter(project=scope.project).select_related("user")
    if not scope.may("PutMember"):
        rows = rows.filter(user=scope.principal.user)
    keys = list(rows.order_by("user__username", "-created_ms"))
    active = [key for key in keys if key.disabled_ms is None]
    idle_since_ms = clock.now_ms() - IDLE_DAYS * DAY
    context = {
        "section": "keys",
        "keys": keys,
        "never_used": sum(key.last_used_ms is None for key in active),
        "idle": sum((key.last_used_ms or idle_since_ms) < idle_since_ms for key in active),
        "idle_since_ms": idle_since_ms,
        "idle_days": IDLE_DAYS,
        "made": made,
        "made_for": sent["member"],
        "accounts": _service_accounts(scope),
        "chosen": sent["member"] or request.GET.get("member", ""),
        "description": sent["description"] if problem else "",
        "problem": problem,
    }
    return render(request, "people/access_keys.html", context, status=422 if problem else 200)


@require_POST
def change_key(request: HttpRequest, key: str) -> HttpResponse:
    """Disable, enable, describe or delete a key."""
    scope = scope_of(request)
    try:
        access_key = store.get_key(scope.project, key)
        if access_key.user_id != scope.principal.user.pk:
            require(scope, "PutMember")
        act = KeyForm(request.POST).values["act"]
        if act == "delete":
            store.delete_key(scope.project, key, actor_of(scope), scope.principal.user)
            messages.success(request, f"The key {key} was deleted.")
        elif act == "describe":
            description = KeyForm(request.POST).values["description"]
            store.describe_key(
                *(scope.project, key, description, actor_of(scope), scope.principal.user)
            )
            messages.success(request, f"The description of {key} was saved.")
        else:
            on = act == "enable"
            who = scope.principal.user
            store.switch_key(scope.project, key, on=on, actor=actor_of(scope), by=who)
            messages.success(request, f"The key {key} was {'enabled' if on else 'disabled'}.")
    except ServiceError as refused:
        messages.error(request, refused.message)
    return redirect("keys")
