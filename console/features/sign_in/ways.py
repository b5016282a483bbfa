"""The feature's functions for the core: sign-in methods, provider accounts, suspended sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from django.conf import settings
from django.contrib.auth import get_user_model
from django.http import HttpResponse
from django.urls import reverse

from console import access
from console.config import logging_setup
from console.features.sign_in import following
from console.features.sign_in.groups import provider_name
from console.web.core.scope import render

if TYPE_CHECKING:
    from collections.abc import Iterable

    from django.http import HttpRequest

    from console.web.core.scope import HtmxRequest

PROVIDER = "provider"
"""Session key: the provider that began the session."""


def list_ways() -> list[tuple[str, str]]:
    """Return name and URL of each provider, in the order of the settings."""
    return [
        (provider.get("name", provider_id), reverse("provider", args=[provider_id]))
        for provider_id, provider in settings.STATEYARD_OIDC.items()
    ]


def find_provider_accounts(user_ids: Iterable[int]) -> set[int]:
    """Return the ids of accounts of people whom a provider or a proxy signs in."""
    ids = list(user_ids)
    return has_provider(ids) | _behind_proxy(ids)


def has_provider(user_ids: Iterable[int]) -> set[int]:
    """Return the ids among these of accounts that a provider signs in."""
    if not settings.STATEYARD_OIDC:
        return set()  # allauth is not loaded, and its tables may be missing
    from allauth.socialaccount.models import SocialAccount

    accounts = SocialAccount.objects.filter(user_id__in=list(user_ids))
    return set(accounts.values_list("user_id", flat=True))


def refuse_unconfirmed(request: HttpRequest) -> HttpResponse | None:
    """Refuse a page if the session's provider no longer confirms the person.

    The session continues once it does. Sign-in and sign-out are always allowed.
    """
    provider_id = request.session.get(PROVIDER)
    match = request.resolver_match
    if not provider_id or match is None or match.url_name == "logout":
        return None
    needs_person = getattr(match.func, "login_required", True)
    if not needs_person or not following.is_paused(request.user.pk or 0):
        return None
    if cast("HtmxRequest", request).htmx:
        return HttpResponse(status=401)
    name = provider_name(provider_id) if provider_id in settings.STATEYARD_OIDC else provider_id
    minutes = following.SILENT_MS // 60_000
    reason = (
        f"{name} has not confirmed your access for {minutes} minutes. Sign in again, or wait until"
        " it answers."
    )
    context = {"reason": reason, "request_id": logging_setup.request_id()}
    return render(request, "sign_in/refused.html", context, status=403)


def _behind_proxy(user_ids: list[int]) -> set[int]:
    """Return the ids of people without a password, if a proxy names people."""
    if not settings.STATEYARD_TRUSTED_USER_HEADER:
        return set()
    users = get_user_model().objects.filter(pk__in=user_ids)
    return {
        user.pk
        for user in users
        if not user.has_usable_password() and not access.is_service_account(user)
    }
