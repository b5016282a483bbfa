"""Parse whole numbers in URLs, queries and forms, within the range of a database column."""

from __future__ import annotations

import re

from django.urls import register_converter
from django.urls.converters import IntConverter

_WHOLE = re.compile(r"\d{1,18}", re.ASCII)


class NumberConverter(IntConverter):
    """``<number:name>`` in a URL: below 10^18, where Django's ``int`` has no limit."""

    regex = r"[0-9]{1,18}"


register_converter(NumberConverter, "number")


def whole_number(text: str) -> int | None:
    """Parse a whole number from 0 to 10^18 - 1; None for other texts."""
    return int(text) if _WHOLE.fullmatch(text) else None
