"""View of an invitation: a person accepts it, with a new password or their account."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import messages
from django.contrib.auth import get_user_model
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.forms import SetPasswordForm
from django.contrib.auth.hashers import make_password
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from console.config import logging_setup
from console.features.members import store as invitations
from console.web.core.scope import render
from console.web.people.login_views import start_session

if TYPE_CHECKING:
    from django.contrib.auth.models import User
    from django.http import HttpRequest, HttpResponse

    from console.models import Invitation


@login_not_required
@sensitive_post_parameters()
@require_http_methods(["GET", "HEAD", "POST"])
def invitation_page(request: HttpRequest, token: str) -> HttpResponse:
    """Show ``/invitation/TOKEN/``. A GET does not use it up."""
    try:
        invitation = invitations.find_invitation(token)
        form = None
        if not invitations.has_account(invitation):
            form = SetPasswordForm(invitations.unsaved_user(invitation), request.POST or None)
        if request.method != "POST":
            return _render_invitation(request, invitation, form)
        if form is not None and not form.is_valid():
            return _render_invitation(request, invitation, form, 422)
        encoded = "" if form is None else make_password(form.cleaned_data["new_password1"])
        user = invitations.accept_invitation(
            token, encoded, _invited_reader(request), logging_setup.request_id()
        )
    except invitations.InvitationClosed:
        return render(request, "members/invitation_closed.html", status=410)
    except invitations.OtherAccount:
        return _render_invitation(request, invitation, None, 403)
    messages.success(request, f"Welcome. You are {invitation.role} of {invitation.project.name}.")
    return start_session(request, user, by="invitation")


def _render_invitation(
    request: HttpRequest,
    invitation: Invitation,
    form: SetPasswordForm[User] | None,
    status: int = 200,
) -> HttpResponse:
    reader = _invited_reader(request)
    name = None if reader is None else reader.get_username()
    context = {
        "invitation": invitation,
        "form": form,
        "reader_name": name,
        "is_reader": name == invitation.name,
        "next": request.path,
    }
    return render(request, "members/invitation.html", context, status=status)


def _invited_reader(request: HttpRequest) -> User | None:
    return request.user if isinstance(request.user, get_user_model()) else None
