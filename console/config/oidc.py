"""Convert the providers in ``STATEYARD_OIDC`` to django-allauth's settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

APPS = (
    "allauth",
    "allauth.account",
    "allauth.socialaccount",
    "allauth.socialaccount.providers.openid_connect",
)
SECOND_FACTOR_APPS = ("allauth", "allauth.account", "allauth.mfa")
MIDDLEWARE = "allauth.account.middleware.AccountMiddleware"
PROXY_USER_MIDDLEWARE = "console.features.sign_in.proxy_user.ProxyUserMiddleware"
ADAPTER = "console.features.sign_in.flow.SignInAdapter"
_SCOPES = ("openid", "profile", "email")


def allauth_providers(providers: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return ``SOCIALACCOUNT_PROVIDERS``. ``providers``: id -> ``OidcProvider`` as JSON."""
    apps = [
        {
            "provider_id": provider_id,
            "name": provider.get("name", provider_id),
            "client_id": provider["client_id"],
            "secret": provider.get("client_secret", ""),
            "settings": {
                "server_url": provider["issuer"].rstrip("/"),
                "oauth_pkce_enabled": True,
                "scope": list(dict.fromkeys([*_SCOPES, *provider.get("scopes", ())])),
            },
        }
        for provider_id, provider in providers.items()
    ]
    return {"openid_connect": {"OAUTH_PKCE_ENABLED": True, "APPS": apps}}
