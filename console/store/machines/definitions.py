"""Store definitions by the hash of their text, once and permanently."""

from __future__ import annotations

import hashlib

from console.models import Definition


def keep_definition(text: str) -> Definition:
    """Return the row of a definition, made if it is new (inside the caller's transaction)."""
    row, _ = Definition.objects.get_or_create(sha256=sha256_of(text), defaults={"text": text})
    return row


def sha256_of(text: str) -> str:
    """Return the key of a definition's text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
