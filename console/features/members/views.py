"""Views of a project's members and invitations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.db.models import Count, Max, Q
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from console.access import SERVICE_ACCOUNT_SIGN
from console.errors import ServiceError
from console.feature import Hook, has_feature, hooked
from console.features.members import store as invitations
from console.features.members.forms import InvitationForm, MemberForm, RemoveMemberForm
from console.models import Membership, Role
from console.store.people import people as store
from console.web.core.forms import LINK_HOURS
from console.web.core.scope import Scope, actor_of, render, require, scope_of

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse


@require_http_methods(["GET", "POST"])
def members_page(request: HttpRequest) -> HttpResponse:
    """Show ``/members/``; an owner adds members and changes roles."""
    scope = scope_of(request)
    if request.method != "POST":
        return _render_members(request, scope)
    require(scope, "PutMember")
    sent = MemberForm(request.POST).values
    name, role = sent["name"], sent["role"]
    try:
        store.put_member(scope.project, name, role, actor_of(scope), scope.principal.user)
    except ServiceError as refused:
        return _render_members(request, scope, 422, problem=refused.message)
    messages.success(request, f"{name} is {role} now.")
    return redirect("members")


def _render_members(
    request: HttpRequest, scope: Scope, status: int = 200, **more: Any
) -> HttpResponse:
    members = _member_rows(scope)
    context = {
        "section": "members",
        "members": members,
        "service_accounts": store.service_accounts(scope.project) if scope.may("PutMember") else (),
        "only_owner": _only_owner(members),
        "roles": Role.choices,
        "hours": LINK_HOURS,
        "invitations": invitations.open_ones(scope.project) if scope.may("RemoveMember") else (),
    }
    for describe in hooked(Hook.MEMBERS_PAGE):
        context |= describe(scope)
    return render(request, "members/page.html", {**context, **more}, status=status)


@require_http_methods(["GET", "HEAD", "POST"])
def invite_member(request: HttpRequest) -> HttpResponse:
    """Create an invitation and show its link once; a GET redirects to the members."""
    scope = scope_of(request)
    require(scope, "CreateInvitation")
    if request.method != "POST":
        return redirect("members")
    sent = InvitationForm(request.POST).values
    hours: int = sent["hours"]
    try:
        invitation, token = invitations.create_invitation(
            scope.project, sent["name"], sent["role"], hours, actor_of(scope), scope.principal.user
        )
    except ServiceError as refused:
        return _render_members(request, scope, 422, refused=refused.message, invited=sent)
    link = request.build_absolute_uri(reverse("invitation", args=[token]))
    return _render_members(request, scope, made=invitation, link=link, lasts=LINK_HOURS[hours])


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
    return redirect("members")


def _member_rows(scope: Scope) -> list[Any]:
    keys = Q(user__accesskey__project=scope.project)
    members = Membership.objects.filter(project=scope.project).select_related("user")
    if has_feature("access_keys"):  # they have a page of their own
        members = members.exclude(user__username__contains=SERVICE_ACCOUNT_SIGN)
    return list(
        members.annotate(
            keys=Count("user__accesskey", filter=keys & Q(user__accesskey__disabled_ms=None)),
            used_ms=Max("user__accesskey__last_used_ms", filter=keys),
        ).order_by("user__username")
    )


def _only_owner(members: list[Membership]) -> Membership | None:
    """Return the only owner, who can be neither removed nor given another role."""
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
    return redirect("members")
