"""Numbers in addresses, queries and forms: only those that a database column holds."""

from __future__ import annotations

import re

from django.urls.converters import IntConverter

_WHOLE = re.compile(r"\d{1,18}", re.ASCII)


class NumberConverter(IntConverter):
    """``<number:name>`` in an address: below 10^18, where Django's ``int`` takes any length."""

    regex = r"[0-9]{1,18}"


def whole_number(text: str) -> int | None:
    """Return the whole number from 0 to 10^18 - 1 that a text writes, None for any other text."""
    return int(text) if _WHOLE.fullmatch(text) else None
