"""The OpenID Connect sign-in (authorization code flow) of django-allauth, with stricter checks.

OpenID Connect allows clients to skip the signature of an ID token fetched over TLS, and allauth
skips it. Here every ID token needs a signature, a nonce and an expiry, the discovery document must
name the configured issuer, and the userinfo must be of the same subject.
"""

from __future__ import annotations

import re
import secrets
from typing import TYPE_CHECKING, Any

import structlog
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from allauth.socialaccount.internal import jwtkit
from allauth.socialaccount.internal.statekit import STATE_TTL
from allauth.socialaccount.providers.base.constants import AuthError, AuthProcess
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from allauth.socialaccount.providers.oauth2.views import OAuth2CallbackView
from allauth.socialaccount.providers.openid_connect.views import OpenIDConnectOAuth2Adapter
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.urls import reverse
from requests import RequestException

from console.config import logging_setup
from console.features.sign_in import accounts, following
from console.features.sign_in.claims import same_groups
from console.features.sign_in.groups import provider_name
from console.features.sign_in.models import ProviderSession
from console.features.sign_in.ways import PROVIDER
from console.web.core.scope import render
from console.web.people.login_views import own_address, start_session

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.http import HttpRequest, HttpResponse

MALFORMED = (AttributeError, ImproperlyConfigured, KeyError, TypeError, ValueError)
"""allauth's exceptions for an answer with a missing member or a wrong type."""
_STALE = (
    "This sign-in was begun in another browser, was used before, or took longer than ten minutes."
    " Begin again."
)
_ERROR_CODE = re.compile(r"[a-z_]{1,40}")
_LONGEST_DETAIL = 300
_LONGEST_SID = 255
log = structlog.get_logger(__name__)


class SignInAdapter(DefaultSocialAccountAdapter):
    """Takes the verified identity from allauth before it looks for its own account."""

    def pre_social_login(self, request: HttpRequest, sociallogin: Any) -> None:
        """Begin a session, or show a refusal."""
        raise ImmediateHttpResponse(_let_in(request, sociallogin))

    def on_authentication_error(
        self,
        request: HttpRequest,
        provider: Any,
        error: Any = None,
        exception: Exception | None = None,
        extra_context: Mapping[str, Any] | None = None,
    ) -> None:
        """Show a refusal instead of allauth's page."""
        del extra_context
        provider_id = provider.app.provider_id
        if exception is not None:
            answer = _refuse_answer(request, provider_id, exception)
        elif error == AuthError.CANCELLED:
            answer = refuse(
                request, provider_id, f"You cancelled the sign-in at {provider_name(provider_id)}."
            )
        elif _ERROR_CODE.fullmatch(code := request.GET.get("error", "")):
            answer = refuse(
                request, provider_id, f"{provider_name(provider_id)} refused the sign-in: {code}."
            )
        else:
            answer = refuse(request, provider_id, _STALE)
        raise ImmediateHttpResponse(answer)


class StrictAdapter(OpenIDConnectOAuth2Adapter):
    """One provider of ``STATEYARD_OIDC``, with all checks."""

    @property
    def openid_config(self) -> dict[str, Any]:
        """Return the discovery document, after checking its issuer."""
        config: dict[str, Any] = super().openid_config
        issuer = settings.STATEYARD_OIDC[self.provider_id]["issuer"]
        if config.get("issuer") != issuer:
            raise OAuth2Error(f"the discovery document names the issuer {config.get('issuer')!r}")
        return config

    def get_callback_url(self, request: HttpRequest, app: Any) -> str:
        """Return the URL that the provider redirects to."""
        del app
        return request.build_absolute_uri(reverse("provider-callback", args=[self.provider_id]))

    def complete_login(self, request: HttpRequest, app: Any, token: Any, **kwargs: Any) -> Any:
        """Return allauth's login of a valid answer; raise OAuth2Error."""
        try:
            login = super().complete_login(request, app, token, **kwargs)
        except MALFORMED as error:
            raise OAuth2Error("malformed answer") from error
        data = login.account.extra_data
        id_token, userinfo = data.get("id_token"), data.get("userinfo")
        if not id_token:
            raise OAuth2Error("no ID token")
        if "exp" not in id_token or "nonce" not in id_token:
            raise OAuth2Error("an ID token without exp or nonce")
        if id_token.get("azp", app.client_id) != app.client_id:
            raise OAuth2Error("an ID token for another client")
        if userinfo and userinfo.get("sub") != id_token["sub"]:
            raise OAuth2Error("the userinfo of another subject")
        return login

    def _fetch_user_info(self, access_token: str) -> dict[str, Any]:
        """Return the userinfo; {} if all claims are in the ID token."""
        if "userinfo_endpoint" not in self.openid_config:
            return {}
        userinfo: dict[str, Any] = super()._fetch_user_info(access_token)
        return userinfo

    def _decode_id_token(self, app: Any, id_token: str) -> dict[str, Any]:
        """Return the claims of an ID token with a valid signature."""
        del app
        return self.decode_signed(id_token)

    def decode_signed(self, token: str) -> dict[str, Any]:
        """Return the claims of a token that the provider signed for this client."""
        claims: dict[str, Any] = jwtkit.verify_and_decode(
            credential=token,
            keys_url=self.openid_config["jwks_uri"],
            issuer=self.openid_config["issuer"],
            audience=self.get_provider().app.client_id,
            lookup_kid=jwtkit.lookup_kid_jwk,
        )
        return claims


def begin(request: HttpRequest, provider_id: str, after: str) -> HttpResponse:
    """Redirect to the provider. ``after``: the URL after sign-in."""
    if not request.user.is_authenticated:
        request.session.set_expiry(STATE_TTL)  # of visitors who never return
    nonce = secrets.token_urlsafe(32)
    try:
        provider = StrictAdapter(request, provider_id).get_provider()
        provider.oauth2_adapter_class = StrictAdapter
        answer: HttpResponse = provider.redirect(
            request,
            process=AuthProcess.LOGIN,
            next_url=after,
            data={"nonce": nonce},
            auth_params={"nonce": nonce},
        )
    except (OAuth2Error, RequestException, *MALFORMED) as error:
        return _refuse_answer(request, provider_id, error)
    answer["Cache-Control"] = "no-store"
    return answer


def finish(request: HttpRequest, provider_id: str) -> HttpResponse:
    """Check the provider's answer; allauth calls ``SignInAdapter`` with the outcome."""
    view = OAuth2CallbackView.adapter_view(StrictAdapter(request, provider_id))
    try:
        answer: HttpResponse = view(request)
    except (OAuth2Error, RequestException, *MALFORMED) as error:
        return _refuse_answer(request, provider_id, error)
    return answer


def _let_in(request: HttpRequest, login: Any) -> HttpResponse:
    """Begin a session for the person in verified claims, unless they have no access."""
    provider_id = login.account.provider
    data = login.account.extra_data
    userinfo = data.get("userinfo") or {}
    claims = {**userinfo, **data["id_token"]}
    nonce = (login.state.get("data") or {}).get("nonce", "")
    if not nonce or not secrets.compare_digest(str(claims["nonce"]).encode(), nonce.encode()):
        return _refuse_answer(request, provider_id, OAuth2Error("the nonce of another sign-in"))
    try:
        user = accounts.admit(provider_id, claims)
    except accounts.NoAccess as error:
        return refuse(request, provider_id, str(error))
    request.session.set_expiry(None)
    after = own_address(request, login.state.get("next", ""))
    answer = start_session(request, user, after, by=f"provider {provider_id}")
    request.session[PROVIDER] = provider_id
    session = ProviderSession(
        session_key=request.session.session_key or "",
        user=user,
        provider_id=provider_id,
        sid=str(claims.get("sid", ""))[:_LONGEST_SID],
    )
    by_userinfo = same_groups(settings.STATEYARD_OIDC[provider_id], userinfo, claims)
    following.begin(session, login.token.token_secret, by_userinfo=by_userinfo)
    return answer


def _refuse_answer(request: HttpRequest, provider_id: str, error: Exception) -> HttpResponse:
    """Refuse an invalid or missing answer of a provider; the log has the details."""
    detail = f"{error}"[:_LONGEST_DETAIL] or type(error).__name__
    cause = f"{error.__cause__ or ''}"[:_LONGEST_DETAIL]
    log.warning("a provider's answer was refused", provider=provider_id, error=detail, cause=cause)
    if isinstance(error, RequestException):
        reason = f"{provider_name(provider_id)} could not be reached, or answered with an error."
        return refuse(request, provider_id, reason, 502)
    return refuse(
        request,
        provider_id,
        f"The answer of {provider_name(provider_id)} is not valid for this sign-in.",
    )


def refuse(request: HttpRequest, provider_id: str, reason: str, status: int = 403) -> HttpResponse:
    """Show why the sign-in was refused."""
    log.info("a sign-in was refused", provider=provider_id, reason=reason)
    context = {"reason": reason, "request_id": logging_setup.request_id()}
    return render(request, "sign_in/refused.html", context, status=status)
