"""Ask for the second factor at sign-in, and for its set-up where it is required.

Between password and code there is no signed-in session: for ten minutes the visitor's session only
records whose password was correct. A change of the password ends that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlencode

from django.contrib import messages
from django.contrib.auth import get_user_model
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.crypto import constant_time_compare

from console.db import clock
from console.features.account import second_factor
from console.server.user_header import USER
from console.web.core.addresses import page_before
from console.web.core.scope import scope_of

if TYPE_CHECKING:
    from django.contrib.auth.models import User
    from django.http import HttpRequest

    from console.web.core.scope import HtmxRequest

_PENDING = "second_step"
_PENDING_S = 600
_OPEN = {"second-factor", "logout", "preferences"}
"""URLs that a person may open before setting up a required second factor."""
_SAFE_METHODS = ("GET", "HEAD")


class Pending:
    """A sign-in after a correct password. ``after``: the next URL; ``by``: for the audit."""

    def __init__(self, user: User, after: str, by: str) -> None:
        self.user, self.after, self.by = user, after, by


def ask_second_factor(request: HttpRequest, user: User, after: str, by: str) -> HttpResponse | None:
    """Ask a person for their second factor before their session begins.

    Needed after a login link, too, because others may see the link on its way; not after a
    provider.
    """
    is_again = request.user.is_authenticated and request.user.pk == user.pk
    if is_again or by.startswith("provider ") or not second_factor.has_second_factor(user):
        return None
    request.session.flush()  # end the session of the person who was signed in before
    request.session[_PENDING] = {
        "user": user.pk,
        "hash": user.get_session_auth_hash(),
        "after": after,
        "by": by,
        "until_ms": clock.now_ms() + _PENDING_S * 1000,
    }
    request.session.set_expiry(_PENDING_S)
    return redirect("second-step")


def find_pending(request: HttpRequest) -> Pending | None:
    """Return this browser's sign-in that waits for a code, None without one."""
    pending: dict[str, Any] = request.session.get(_PENDING) or {}
    if pending.get("until_ms", 0) <= clock.now_ms():
        return None
    user = get_user_model().objects.filter(pk=pending["user"], is_active=True).first()
    if user is None:
        return None
    if not constant_time_compare(pending["hash"], user.get_session_auth_hash()):
        return None
    return Pending(user, pending["after"], pending["by"])


def end_pending(request: HttpRequest) -> None:
    """Delete the waiting sign-in, because its session begins."""
    request.session.pop(_PENDING, None)
    request.session.set_expiry(None)


def lead_to_setup(request: HttpRequest) -> HttpResponse | None:
    """Redirect a person who lacks a required second factor to its page."""
    match = request.resolver_match
    is_elsewhere = request.session.get("provider") or getattr(request, "scope", {}).get(USER)
    if is_elsewhere or (match and match.url_name in _OPEN):
        return None  # the provider or proxy asks for a second factor, or the page is exempt
    try:  # with the rows that the page reads anyway
        required = scope_of(request).principal.needs_second_factor
    except PermissionDenied:  # no project
        required = False
    if not second_factor.must_set_up(cast("User", request.user), required=required):
        return None
    if cast("HtmxRequest", request).htmx:
        return HttpResponse("Set up a second factor first.", status=403)
    address = reverse("second-factor")
    if request.method in _SAFE_METHODS:
        after = request.get_full_path()
    else:
        after = page_before(request)
        messages.error(request, "Nothing was changed: set up a second factor first.")
    return redirect(f"{address}?{urlencode({'next': after})}" if after else address)
