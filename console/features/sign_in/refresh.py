"""Ask providers for the current groups of signed-in people, or the end of their access."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import structlog
from allauth.socialaccount.adapter import get_adapter
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from django.conf import settings
from django.http import HttpRequest
from requests import ConnectionError as RequestsConnectionError
from requests import RequestException, Timeout
from requests.auth import HTTPBasicAuth

from console.db import clock
from console.db.sealing import SealError
from console.features.sign_in import accounts, following
from console.features.sign_in.flow import MALFORMED, StrictAdapter

if TYPE_CHECKING:
    from console.features.sign_in.models import FollowedPerson

_AT_ONCE = 8
_BATCH = 64
_REFUSALS = (400, 401)
log = structlog.get_logger(__name__)


class SignInEnded(Exception):
    """The provider refuses the refresh token."""


class ProviderSilent(Exception):
    """The provider was not asked: a request for another person got no answer."""


class ClaimsMissing(Exception):
    """The response to a refresh has no claims with groups."""


@dataclass(frozen=True, slots=True)
class Confirmed:
    """A provider's response: claims, the next refresh token, and when it was requested."""

    claims: dict[str, Any]
    token: str
    asked_ms: int


class RefreshAdapter(StrictAdapter):
    """An adapter for one provider on threads, without an HTTP request or a database."""

    def __init__(self, provider_id: str) -> None:
        """Read the settings of the provider."""
        super().__init__(HttpRequest(), provider_id)
        self._provider = super().get_provider()
        self.is_silent = False

    def get_provider(self) -> Any:
        """Return the provider. allauth would read its settings again at each call."""
        return self._provider

    def ask(self, person: FollowedPerson) -> Confirmed:
        """Return the current claims of a person.

        Raise ``SignInEnded``, ``ClaimsMissing``, ``SealError`` (the stored token cannot be opened),
        ``OAuth2Error`` (malformed response) or an error of requests.
        """
        asked_ms = clock.now_ms()
        token = following.open_token(person)
        try:
            answer = self._refresh(token)
            userinfo = self._fetch_user_info(answer["access_token"])
            id_token = answer.get("id_token") or ""
            claims = self._decode_id_token(self._provider.app, id_token) if id_token else {}
        except MALFORMED as error:
            raise OAuth2Error("malformed answer") from error
        if not claims and not (userinfo and person.by_userinfo):
            raise ClaimsMissing
        merged = {**userinfo, **claims, "iss": self.openid_config["issuer"]}
        if userinfo and userinfo.get("sub") != merged["sub"]:
            raise OAuth2Error("the userinfo of another subject")
        return Confirmed(merged, answer.get("refresh_token") or token, asked_ms)

    def _refresh(self, token: str) -> dict[str, Any]:
        """Return the answer of the token endpoint; raise ``SignInEnded`` if it refuses the token.

        allauth has no call for this.
        """
        app = self._provider.app
        sent = {"grant_type": "refresh_token", "refresh_token": token}
        auth = HTTPBasicAuth(app.client_id, app.secret) if self.basic_auth else None
        if auth is None:
            sent["client_id"] = app.client_id
            if app.secret:
                sent["client_secret"] = app.secret
        with get_adapter().get_requests_session() as session:
            response = session.post(
                self.access_token_url, data=sent, auth=auth, allow_redirects=False
            )
        if response.status_code in _REFUSALS and response.json().get("error") == "invalid_grant":
            raise SignInEnded
        response.raise_for_status()
        answer: dict[str, Any] = response.json()
        return answer


def follow_claims() -> None:
    """Refresh the claims of all due people. A provider without an answer is skipped this time.

    Threads only call the provider; this thread writes the results.
    """
    following.prune()
    adapters: dict[str, RefreshAdapter] = {}
    provider_ids = set(settings.STATEYARD_OIDC)
    began_ms = clock.now_ms()
    while people := following.take_due(_BATCH, provider_ids, began_ms):
        for person in people:
            if person.provider_id not in adapters:
                adapters[person.provider_id] = RefreshAdapter(person.provider_id)
        with ThreadPoolExecutor(_AT_ONCE, "claims") as pool:
            session_of_future = {
                pool.submit(_ask_provider, adapters[person.provider_id], person): person
                for person in people
            }
            for future in as_completed(session_of_future):
                _settle(session_of_future[future], future.result())
        provider_ids -= {each for each, adapter in adapters.items() if adapter.is_silent}


def _ask_provider(adapter: RefreshAdapter, person: FollowedPerson) -> Confirmed | Exception:
    """Return the provider's response, or the error instead of raising it."""
    if adapter.is_silent:
        return ProviderSilent("the provider was silent a moment ago")
    try:
        answer = adapter.ask(person)
    except (RequestsConnectionError, Timeout) as error:
        adapter.is_silent = True
        return error
    except (SignInEnded, ClaimsMissing, OAuth2Error, RequestException, SealError) as error:
        return error
    else:
        return answer


def _settle(person: FollowedPerson, answer: Confirmed | Exception) -> None:
    """Update or end the person's access after a response."""
    about = {"provider": person.provider_id, "person": person.user.get_username()}
    if isinstance(answer, Confirmed):
        follow = partial(accounts.follow, person.provider_id, answer.claims, person.pk)
        try:
            following.confirm(person, answer.token, answer.asked_ms, follow)
        except accounts.OtherSubject:
            log.warning("a provider confirms a sign-in by another person", **about)
            following.postpone(person)
    elif isinstance(answer, SignInEnded | SealError):
        log.info("a sign-in has ended at its provider", **about)
        following.stop(person, "the provider refused the refresh token")
    elif isinstance(answer, ClaimsMissing):
        log.warning("a refresh names no groups: rights follow at sign-in only", **about)
        following.unfollow(person)
    else:
        log.warning("a provider does not confirm a sign-in", **about, error=str(answer)[:300])
        following.postpone(person)
