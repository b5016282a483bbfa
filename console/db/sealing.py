"""Encrypt project secrets in the database, with a key derived from the master secret.

AES-256 in Galois/counter mode: a text that was changed, or moved to another place than it was
sealed for, does not open. Neither does any text once the server has another master secret.
"""

from __future__ import annotations

import base64
import json
import os
from typing import TYPE_CHECKING

from django.conf import settings

if TYPE_CHECKING:
    from collections.abc import Mapping

_FORMAT = "1:"
_NONCE_BYTES = 12


class SealError(Exception):
    """A sealed text does not open: changed, moved, or another master secret."""


def seal_secrets(secrets: Mapping[str, str], place: str) -> str:
    """Encrypt secrets as a text that opens at the same place only."""
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # loaded when used: 5 MB

    nonce = os.urandom(_NONCE_BYTES)
    text = json.dumps(dict(secrets)).encode()
    sealed = AESGCM(settings.STATEYARD_SEAL_KEY).encrypt(nonce, text, place.encode())
    return _FORMAT + base64.b64encode(nonce + sealed).decode()


def open_secrets(sealed: str, place: str) -> dict[str, str]:
    """Decrypt the secrets in a sealed text; raise ``SealError``."""
    from cryptography.exceptions import InvalidTag  # loaded when used: 5 MB
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    try:
        data = base64.b64decode(sealed.removeprefix(_FORMAT), validate=True)
        nonce, rest = data[:_NONCE_BYTES], data[_NONCE_BYTES:]
        text = AESGCM(settings.STATEYARD_SEAL_KEY).decrypt(nonce, rest, place.encode())
    except (InvalidTag, ValueError):
        raise SealError(f"the secrets of {place} cannot be decrypted") from None
    secrets: dict[str, str] = json.loads(text)
    return secrets
