"""Is this the server whose secret wrote the database?"""

from __future__ import annotations

import hashlib
import hmac

from django.conf import settings
from django.core.management.base import CommandError

from console.models import ServerFact
from console.store.writer import write

_NAME = "fingerprint of the secret"


class WrongSecret(CommandError):
    """Another secret made the tokens and access keys of this database; said without a traceback."""


def claim() -> None:
    """Remember our secret in an empty database; raise ``WrongSecret`` if it knows another."""

    def store() -> str:
        fact, _ = ServerFact.objects.get_or_create(name=_NAME, defaults={"value": _fingerprint()})
        return fact.value

    if not hmac.compare_digest(write(store), _fingerprint()):
        raise WrongSecret(
            f"STEPYARD_SECRET, or without it {settings.DATA_DIR / 'secret'}: this database was "
            "first used with another secret, and none of its task tokens and access keys would "
            "work with this one. Start with that secret, or on another database."
        )


def _fingerprint() -> str:
    key = settings.STEPYARD_TOKEN_KEY
    return hmac.new(key, b"stepyard/fingerprint", hashlib.sha256).hexdigest()
