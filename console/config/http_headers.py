"""Tell which headers a web request can have."""

from __future__ import annotations

import re

FRAMING = "content-length|keep-alive|proxy-connection"
"""Headers, beside those that AWS forbids, that only the client itself can set (a pattern)."""
_FRAMING = re.compile(
    rf"connection|expect|host|te|trailer|transfer-encoding|upgrade|{FRAMING}", re.IGNORECASE
)
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"(?:[\x21-\x7e](?:[\x20-\x7e\t]*[\x21-\x7e])?)?")


def is_header(name: str, *values: str) -> bool:
    """Tell whether a header can be sent with values."""
    return _NAME.fullmatch(name) is not None and all(map(_VALUE.fullmatch, values))


def is_framing(name: str) -> bool:
    """Tell whether a header says where a message ends, or to whom it goes."""
    return _FRAMING.fullmatch(name) is not None
