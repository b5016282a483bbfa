"""Check that a text can be stored in every database: two kinds of characters cannot."""

from __future__ import annotations

import re

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_INSTEAD = "\ufffd"


def storable(text: str) -> str:
    """Return the text with U+FFFD for what cannot be stored: U+0000 (PostgreSQL), lone surrogates.

    JSON text needs no care for U+0000, which it can only hold as an escape.
    """
    if text.isascii() and "\x00" not in text:
        return text
    return _UNSTORABLE.sub(_INSTEAD, text)
