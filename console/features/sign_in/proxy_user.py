"""Sign people in by the user name that a trusted proxy sends in a header of each request.

There is no session: each request stands alone, so a person who signs out at the proxy, or is
removed here, has no access from the next request on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import structlog
from django.contrib.auth import get_user_model
from django.db.models import Q
from django.utils.deprecation import MiddlewareMixin

from console import access
from console.config import logging_setup
from console.features.sign_in import ways
from console.server.user_header import AMBIGUOUS, USER
from console.web.core.scope import render

if TYPE_CHECKING:
    from django.contrib.auth.models import User
    from django.http import HttpRequest, HttpResponse

log = structlog.get_logger(__name__)


class ProxyUserMiddleware(MiddlewareMixin):
    """Sets the request's user to the person named by the proxy."""

    def process_view(
        self, request: HttpRequest, view_func: Any, *_view: object
    ) -> HttpResponse | None:
        """Return None if the view may run, else a page with the reason of the refusal."""
        name = getattr(request, "scope", {}).get(USER)
        if not name or not getattr(view_func, "login_required", True):
            return None
        user = None if name == AMBIGUOUS else _find_user(name)
        if user is None:
            return _refuse(request, name)
        request.user = user
        return None


def _find_user(name: str) -> User | None:
    """Return the active account of a member or administrator with this name.

    None for a service account, and for a person who signs in by an identity provider.
    """
    users = get_user_model().objects.filter(username=name, is_active=True)
    user = users.filter(Q(is_superuser=True) | Q(membership__isnull=False)).distinct().first()
    if user is None or access.is_service_account(user) or ways.has_provider([user.pk]):
        return None
    return user


def _refuse(request: HttpRequest, name: str) -> HttpResponse:
    """Show why the person has no access."""
    log.warning("a proxy named a person without access", person=name)
    if name == AMBIGUOUS:
        reason = "The proxy must send your name once, in UTF-8."
    else:
        reason = (
            f"The proxy names you {name}. No member of this server has that name and signs in by"
            " the proxy: ask an owner to add you."
        )
    context = {"reason": reason, "request_id": logging_setup.request_id()}
    return render(request, "sign_in/refused.html", context, status=403)
