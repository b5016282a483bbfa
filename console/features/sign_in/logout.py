"""Back-channel logout: a provider ends sessions by a call to this server.

The logout token is signed like an ID token. It must have a logout event and an id, which is
accepted once, and no nonce, so that an ID token is never accepted as a logout token.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import structlog
from allauth.socialaccount.models import SocialAccount
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from django.http import JsonResponse
from requests import RequestException

from console.db import clock
from console.features.sign_in import following
from console.features.sign_in.claims import account_key
from console.features.sign_in.flow import MALFORMED, StrictAdapter

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

_EVENT = "http://schemas.openid.net/event/backchannel-logout"
_OLDEST_MS = 10 * 60_000
_LONGEST = 16_384
log = structlog.get_logger(__name__)


def end_sessions(request: HttpRequest, provider_id: str, token: str) -> HttpResponse:
    """Answer the provider as the specification says: 200, or 400 with the reason."""
    try:
        claims = _read_token(StrictAdapter(request, provider_id), token)
        _end_named(provider_id, claims)
    except (OAuth2Error, RequestException, *MALFORMED) as error:
        log.warning("a logout token was refused", provider=provider_id, error=f"{error}"[:300])
        answer: HttpResponse = JsonResponse(
            {"error": "invalid_request", "error_description": "The logout token is not valid."},
            status=400,
        )
    else:
        answer = JsonResponse({})
    answer["Cache-Control"] = "no-store"
    return answer


def _read_token(adapter: StrictAdapter, token: str) -> dict[str, Any]:
    """Return the claims of a logout token; raise ``OAuth2Error`` for any other token."""
    if not 0 < len(token) <= _LONGEST:
        raise OAuth2Error("no logout token, or a long one")
    claims = adapter.decode_signed(token)
    if not isinstance(claims.get("events", {}).get(_EVENT), dict):
        raise OAuth2Error("a token without an event of logout")
    if "nonce" in claims:
        raise OAuth2Error("a token with a nonce")
    if not _is_text(claims.get("jti")):
        raise OAuth2Error("a token without jti")
    if not (_is_text(claims.get("sub")) or _is_text(claims.get("sid"))):
        raise OAuth2Error("a token that names neither person nor session")
    if clock.now_ms() - 1000 * float(claims["iat"]) > _OLDEST_MS:
        raise OAuth2Error("an old token")
    return claims


def _end_named(provider_id: str, claims: dict[str, Any]) -> None:
    user_id = None
    if _is_text(claims.get("sub")):
        key = account_key(claims["iss"], claims["sub"])
        accounts = SocialAccount.objects.filter(provider=provider_id, uid=key)
        user_id = accounts.values_list("user_id", flat=True).first()
        if user_id is None:
            return  # the token names no person of this server
    sid = claims["sid"] if _is_text(claims.get("sid")) else ""
    until_ms = clock.now_ms() + 2 * _OLDEST_MS
    if not following.end_sessions(provider_id, sid, user_id, claims["jti"], until_ms):
        raise OAuth2Error("a token that was used before")


def _is_text(value: object) -> bool:
    return isinstance(value, str) and value != ""
