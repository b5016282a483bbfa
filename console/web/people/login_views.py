"""Sign-in by password or one-time link; change of passwords."""

from __future__ import annotations

import ipaddress
import secrets
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import get_user_model, login, logout, update_session_auth_hash
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.forms import AuthenticationForm, PasswordChangeForm, SetPasswordForm
from django.contrib.auth.hashers import make_password
from django.core import signing
from django.core.exceptions import PermissionDenied
from django.shortcuts import redirect
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from console import access
from console.config import logging_setup
from console.db import clock, refusals
from console.db.rows import storable
from console.feature import Hook, hooked
from console.models import Membership
from console.store.people import login_attempts, login_links, people
from console.web.core.scope import own_actor, render, scope_of
from console.web.people.forms import NextForm

if TYPE_CHECKING:
    from django.contrib.auth.models import User
    from django.http import HttpRequest, HttpResponse

    from console.models import Project

_BACKEND = "django.contrib.auth.backends.ModelBackend"
_REFUSED = "The name or the password is not correct."
_DEVICE = "stateyard_device"
_DEVICE_S = 365 * 24 * 3600
_LOGIN_PAGE = "people/login.html"
_PASSWORD_PAGE = "people/password.html"
SIGNED_IN = "signed_in_ms"
"""Key of the session: when it began, in epoch milliseconds."""
_PASSWORD_FORM = "the form that changes the password"


@login_not_required
@sensitive_post_parameters("password")
@require_http_methods(["GET", "HEAD", "POST"])
def login_page(request: HttpRequest) -> HttpResponse:
    """Show the ways to sign in; a POST checks name and password."""
    asked = NextForm(request.GET).values
    after = NextForm(request.POST).values["next"] or asked["next"]
    by_mail = any(offers() for offers in hooked(Hook.LOST_PASSWORD))
    ways: dict[str, Any] = {"ways": list_ways(after), "reset_by_mail": by_mail}
    if request.method != "POST":
        shown = {**ways, "next": after, "unsent": bool(asked["unsent"])}
        return render(request, _LOGIN_PAGE, shown)
    if not settings.STATEYARD_PASSWORDS:
        _record_refused(request, "", "this server has no passwords")
        return render(request, _LOGIN_PAGE, {**ways, "next": after}, status=403)
    login_form = AuthenticationForm(request, request.POST)
    # As the form reads it: one account under two spellings would have two counts of attempts.
    field = login_form.fields["username"]
    name = str(field.to_python(login_form.data.get("username", "")))
    context: dict[str, Any] = {**ways, "next": after, "username": name}
    try:
        attempt = login_attempts.begin_attempt(
            name, limited_address(request), _device(request, name)
        )
    except login_attempts.TooManyAttempts as locked:
        _record_refused(request, name, "too many wrong passwords")
        return too_many_attempts(request, _LOGIN_PAGE, context, locked)
    if not login_form.is_valid():
        attempt.failed()
        _record_refused(request, name, "wrong password")
        return render(request, _LOGIN_PAGE, {**context, "refused": _REFUSED}, status=422)
    attempt.succeeded()
    return start_session(request, login_form.get_user(), own_address(request, after), by="password")


def _record_refused(request: HttpRequest, name: str, reason: str) -> None:
    """Record a refused sign-in in the server's audit trail; unknown names are left out."""
    # PostgreSQL takes no question about a text with U+0000
    is_account = storable(name) == name and get_user_model().objects.filter(username=name).exists()
    refusals.record_refused_sign_in(
        name if is_account else "", limited_address(request), logging_setup.request_id(), reason
    )


def list_ways(after: str) -> list[tuple[str, str]]:
    """Return name and URL of other sign-in methods. ``after``: the URL to return to."""
    query = f"?{urlencode({'next': after})}" if after else ""
    return [(name, address + query) for way in hooked(Hook.SIGN_IN_WAYS) for name, address in way()]


def own_address(request: HttpRequest, after: str) -> str:
    """Return the URL after a sign-in: on this server, else the overview."""
    is_own = url_has_allowed_host_and_scheme(after, {request.get_host()}, request.is_secure())
    return after if is_own and after.startswith("/") else "overview"


def too_many_attempts(
    request: HttpRequest,
    template: str,
    context: dict[str, Any],
    locked: login_attempts.TooManyAttempts,
) -> HttpResponse:
    """Answer 429: passwords are not checked for now, for existing and unknown names alike."""
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
    """Show a button that signs in once; a used, expired or unknown link says so.

    Opening the address changes nothing: scanners of mail and previews of chats open it, too.
    """
    post = request.method == "POST"
    user = login_links.use_link(token) if post else login_links.find_user(token)
    if user is None:
        if post:
            _record_refused(request, "", "a login link that is used, too old or unknown")
        return render(request, "people/login_link_used.html", status=410)
    if not post:
        return render(request, "people/login_link.html", {"name": user.get_username()})
    return start_session(request, user, by="login link")


def start_session(
    request: HttpRequest, user: User, after: str = "overview", *, by: str
) -> HttpResponse:
    """Start a person's session, or ask for a second factor. ``by``: the method, for the audit."""
    for ask in hooked(Hook.SECOND_STEP):
        answer: HttpResponse | None = ask(request, user, after, by)
        if answer is not None:
            return answer
    return open_session(request, user, after, by=by)


def open_session(request: HttpRequest, user: User, after: str, *, by: str) -> HttpResponse:
    """Start a person's session, and remember their browser."""
    login_attempts.record_sign_in(
        user.get_username(), by, limited_address(request), logging_setup.request_id()
    )
    device = _device(request, user.get_username())
    login(request, user, backend=_BACKEND)
    request.session[SIGNED_IN] = clock.now_ms()
    response = redirect(after)
    value = signing.dumps([user.get_username(), device or secrets.token_hex(8)], salt=_DEVICE)
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
    """Return the id of this browser if the person has signed in with it before, else ""."""
    try:
        whose, device = signing.loads(
            request.COOKIES.get(_DEVICE, ""), salt=_DEVICE, max_age=_DEVICE_S
        )
    except (signing.BadSignature, ValueError):
        return ""
    return str(device) if whose == name else ""


def limited_address(request: HttpRequest) -> str:
    """Return a request's address for the limit of attempts.

    That is the peer of the connection, or the address sent by a proxy of STATEYARD_PROXIES. Of IPv6
    it is the network of 64 bits: everybody has that many addresses.
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
    """Show ``/password/``. An existing password must be given; other sessions end.

    An administrator of the server has a password without belonging to a project.
    """
    user, project = _account_of(request)
    if not settings.STATEYARD_PASSWORDS:
        raise PermissionDenied("This server has no passwords.")
    if people.provider_accounts([user]):
        raise PermissionDenied("You sign in at a provider, so your account has no password here.")
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
    return _set_password(request, user, project, form.cleaned_data["new_password1"])


def _account_of(request: HttpRequest) -> tuple[User, Project]:
    """Return the reader, and the project whose audit trail records the change.

    That is ``default`` for an administrator without a project. Raise ``PermissionDenied`` for
    anybody else without one: their account is closed.
    """
    user = request.user
    if isinstance(user, get_user_model()) and user.is_superuser:
        members = Membership.objects.filter(user=user)
        if not members.exists():
            return user, access.default_project()
    scope = scope_of(request)
    return scope.principal.user, scope.project


def _is_valid_password(request: HttpRequest, user: User, form: SetPasswordForm[User]) -> bool:
    """Check the form; raise TooManyAttempts after too many wrong current passwords.

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


def _set_password(
    request: HttpRequest, user: User, project: Project, password: str
) -> HttpResponse:
    encoded = make_password(password)
    actor = own_actor(user)
    if not people.set_password(project, user, encoded, actor):
        messages.error(
            request,
            "Your password was changed on another page in the meantime. It is not changed again.",
        )
        return redirect("password")
    user.password = encoded
    update_session_auth_hash(request, user)
    messages.success(request, "Your password is set. Your other sessions have ended.")
    return redirect("password")
