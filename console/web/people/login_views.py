"""Let people in by password, one-time link or invitation, and change their password."""

from __future__ import annotations

import ipaddress
import secrets
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import get_user_model, login, logout, update_session_auth_hash
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.forms import AuthenticationForm, PasswordChangeForm, SetPasswordForm
from django.contrib.auth.hashers import make_password
from django.core import signing
from django.shortcuts import redirect
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from console.config import logging_setup
from console.store.people import invitations, login_attempts, login_links, people
from console.web.core.scope import Scope, actor_of, render, scope_of
from console.web.people.forms import NextForm

if TYPE_CHECKING:
    from django.contrib.auth.models import User
    from django.http import HttpRequest, HttpResponse

    from console.models import Invitation

_BACKEND = "django.contrib.auth.backends.ModelBackend"
_REFUSED = "The name or the password is not correct."
_DEVICE = "stateyard_device"
_DEVICE_S = 365 * 24 * 3600
_PASSWORD_PAGE = "people/password.html"
_PASSWORD_FORM = "the form that changes the password"


@login_not_required
@sensitive_post_parameters("password")
@require_http_methods(["GET", "HEAD", "POST"])
def login_page(request: HttpRequest) -> HttpResponse:
    """Ask for name and password."""
    asked = NextForm(request.GET).values
    after = NextForm(request.POST).values["next"] or asked["next"]
    if request.method != "POST":
        return render(
            request, "people/login.html", {"next": after, "unsent": bool(asked["unsent"])}
        )
    login_form = AuthenticationForm(request, request.POST)
    # As the form reads it: one account under two spellings would have two counts of attempts.
    field = login_form.fields["username"]
    name = str(field.to_python(login_form.data.get("username", "")))
    context: dict[str, Any] = {"next": after, "username": name}
    try:
        attempt = login_attempts.begin_attempt(
            name, limited_address(request), _device(request, name)
        )
    except login_attempts.TooManyAttempts as locked:
        return too_many_attempts(request, "people/login.html", context, locked)
    if not login_form.is_valid():
        attempt.failed()
        return render(request, "people/login.html", {**context, "refused": _REFUSED}, status=422)
    attempt.succeeded()
    mine = url_has_allowed_host_and_scheme(after, {request.get_host()}, request.is_secure())
    return start_session(
        request,
        login_form.get_user(),
        after if mine and after.startswith("/") else "overview",
        by="password",
    )


def too_many_attempts(
    request: HttpRequest,
    template: str,
    context: dict[str, Any],
    locked: login_attempts.TooManyAttempts,
) -> HttpResponse:
    """Answer 429: no password is checked now, whether there is such a name or not."""
    minutes = -(-locked.seconds // 60)
    refused = (
        f"Too many wrong passwords. Try again in {minutes} minute{'s' * (minutes > 1)}; "
        "a login link works at once."
    )
    response = render(request, template, {**context, "refused": refused}, status=429)
    response["Retry-After"] = str(locked.seconds)
    return response


@login_not_required
@require_http_methods(["GET", "HEAD", "POST"])
def login_link_page(request: HttpRequest, token: str) -> HttpResponse:
    """Show a button that logs in, once; a link that is used, too old or unknown says so.

    Opening the address changes nothing: scanners of mail and previews of chats open it, too.
    """
    post = request.method == "POST"
    user = login_links.use_link(token) if post else login_links.find_user(token)
    if user is None:
        return render(request, "people/login_link_used.html", status=410)
    if not post:
        return render(request, "people/login_link.html", {"name": user.get_username()})
    return start_session(request, user, by="login link")


def start_session(
    request: HttpRequest, user: User, after: str = "overview", *, by: str
) -> HttpResponse:
    """Begin a person's session; let their browser be known as theirs from now on.

    ``by``: what let them in, for the audit.
    """
    login_attempts.record_sign_in(
        user.get_username(), by, limited_address(request), logging_setup.request_id()
    )
    known = _device(request, user.get_username())
    login(request, user, backend=_BACKEND)
    response = redirect(after)
    value = signing.dumps([user.get_username(), known or secrets.token_hex(8)], salt=_DEVICE)
    response.set_cookie(
        _DEVICE,
        value,
        max_age=_DEVICE_S,
        path="/login/",
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )
    return response


def _device(request: HttpRequest, name: str) -> str:
    """Return the id of this browser if the person signed in with it before, else ""."""
    try:
        whose, device = signing.loads(
            request.COOKIES.get(_DEVICE, ""), salt=_DEVICE, max_age=_DEVICE_S
        )
    except (signing.BadSignature, ValueError):
        return ""
    return str(device) if whose == name else ""


def limited_address(request: HttpRequest) -> str:
    """Return where a request comes from, as attempts are counted by.

    That is the peer of the connection, or what a proxy of STATEYARD_PROXIES says. Of IPv6 it is the
    network of 64 bits: everybody has that many addresses.
    """
    text = str(request.META.get("REMOTE_ADDR", ""))
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return text[:64]
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is None:
            return str(ipaddress.ip_network((address, 64), strict=False))
        address = address.ipv4_mapped
    return str(address)


@require_POST
def log_out(request: HttpRequest) -> HttpResponse:
    """Sign out."""
    logout(request)
    return redirect("login")


@sensitive_post_parameters()
@require_http_methods(["GET", "POST"])
def password_page(request: HttpRequest) -> HttpResponse:
    """Answer ``/password/``. A person who has a password must know it; other sessions end."""
    scope = scope_of(request)
    user = scope.principal.user
    submitted = request.POST if request.method == "POST" else None
    has_one = user.has_usable_password()
    form = PasswordChangeForm(user, submitted) if has_one else SetPasswordForm(user, submitted)
    context: dict[str, Any] = {"section": "password", "form": form, "has_one": has_one}
    if submitted is None:
        return render(request, _PASSWORD_PAGE, context)
    try:
        valid = _is_valid_password(request, user, form)
    except login_attempts.TooManyAttempts as locked:
        context["form"] = type(form)(user)
        return too_many_attempts(request, _PASSWORD_PAGE, context, locked)
    if not valid:
        return render(request, _PASSWORD_PAGE, context, status=422)
    return _set_password(request, scope, form.cleaned_data["new_password1"])


def _is_valid_password(request: HttpRequest, user: User, form: SetPasswordForm[User]) -> bool:
    """Check the form; raise TooManyAttempts if the current password was guessed at too often.

    A person at an unlocked screen could guess it here as well as at the login.
    """
    if not isinstance(form, PasswordChangeForm):
        return form.is_valid()
    attempt = login_attempts.begin_attempt(
        user.get_username(), limited_address(request), _PASSWORD_FORM
    )
    valid = form.is_valid()
    if "old_password" in form.errors:
        attempt.failed()
    else:
        attempt.succeeded()
    return valid


def _set_password(request: HttpRequest, scope: Scope, password: str) -> HttpResponse:
    user = scope.principal.user
    encoded = make_password(password)
    if not people.set_password(scope.project, user, encoded, actor_of(scope)):
        messages.error(
            request,
            "Your password was changed on another page in the meantime. It is not changed again.",
        )
        return redirect("password")
    user.password = encoded
    update_session_auth_hash(request, user)
    messages.success(request, "Your password is set. Your other sessions have ended.")
    return redirect("password")


@login_not_required
@sensitive_post_parameters()
@require_http_methods(["GET", "HEAD", "POST"])
def invitation_page(request: HttpRequest, token: str) -> HttpResponse:
    """Answer ``/invitation/TOKEN/``. Opening it uses nothing up."""
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
        return render(request, "people/invitation_closed.html", status=410)
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
    return render(request, "people/invitation.html", context, status=status)


def _invited_reader(request: HttpRequest) -> User | None:
    return request.user if isinstance(request.user, get_user_model()) else None
