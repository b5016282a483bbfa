"""Write texts into files that spreadsheets open."""

from __future__ import annotations

_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def without_formula(text: str) -> str:
    """Keep spreadsheets from taking a text for a formula: a quote goes before it."""
    return f"'{text}" if text.startswith(_FORMULA) else text
