"""Check names and values of HTTP headers of a Task's web request, for settings and HTTP Tasks."""

from __future__ import annotations

import re

FRAMING = "content-length|keep-alive|proxy-connection"
"""Pattern of further headers reserved for the HTTP client, beyond AWS's own list."""
_FRAMING = re.compile(
    rf"connection|expect|host|te|trailer|transfer-encoding|upgrade|{FRAMING}", re.IGNORECASE
)
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"(?:[\x21-\x7e](?:[\x20-\x7e\t]*[\x21-\x7e])?)?")


def is_header(name: str, *values: str) -> bool:
    """Return whether a header's name and values are valid."""
    return _NAME.fullmatch(name) is not None and all(map(_VALUE.fullmatch, values))


def is_framing(name: str) -> bool:
    """Return whether a header controls the connection or message length (``Host``, ``TE``)."""
    return _FRAMING.fullmatch(name) is not None
