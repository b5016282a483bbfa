"""The parts of django-allauth's second factors that a server decides on."""

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
    """Encrypt secrets with a key of the master secret, and name the account in the app."""

    def encrypt(self, text: str) -> str:
        """Return a secret as the database has it."""
        return _cipher().encrypt(text.encode()).decode()

    def decrypt(self, encrypted_text: str) -> str:
        """Return a secret as it was; raise ``InvalidToken`` under another master secret."""
        return _cipher().decrypt(encrypted_text.encode()).decode()

    def get_totp_label(self, user: User) -> str:
        """Return the person's name: their e-mail address stays here."""
        return user.get_username()

    def get_totp_issuer(self) -> str:
        """Return the name of this server, which differs from those of other servers."""
        host = urlsplit(settings.STATEYARD_URL or "").hostname
        return f"Stateyard {host}" if host else "Stateyard"


def _cipher() -> Fernet:
    return Fernet(base64.urlsafe_b64encode(settings.STATEYARD_SECOND_FACTOR_KEY))
