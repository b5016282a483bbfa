"""Adapt django-allauth's second factors to this server: encryption, and names in the app."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from allauth.mfa.adapter import DefaultMFAAdapter
from cryptography.fernet import Fernet
from django.conf import settings

if TYPE_CHECKING:
    from django.contrib.auth.models import User


class MfaAdapter(DefaultMFAAdapter):
    """Encrypts secrets with a key derived from the master secret; names account and server."""

    def encrypt(self, text: str) -> str:
        """Return a secret encrypted for the database."""
        return _cipher().encrypt(text.encode()).decode()

    def decrypt(self, encrypted_text: str) -> str:
        """Return a decrypted secret; raise ``InvalidToken`` under another master secret."""
        return _cipher().decrypt(encrypted_text.encode()).decode()

    def get_totp_label(self, user: User) -> str:
        """Return the account's name in the app: the user name, not the mail address."""
        return user.get_username()

    def get_totp_issuer(self) -> str:
        """Return the server's name in the app, different for each server."""
        host = urlsplit(settings.STATEYARD_URL or "").hostname
        return f"Stateyard {host}" if host else "Stateyard"


def _cipher() -> Fernet:
    return Fernet(base64.urlsafe_b64encode(settings.STATEYARD_SECOND_FACTOR_KEY))
