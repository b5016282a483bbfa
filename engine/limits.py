"""The largest input, output, argument or result that is allowed.

It is the service's limit of today, or that of an earlier time. A process chooses once, before
anything runs (``use_limits``); engines with different limits need different processes.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine import jsontext

MAX_BYTES = 262_144
"""AWS: input, output, arguments and result are at most 256 KiB of UTF-8 JSON text."""


@dataclass(frozen=True, slots=True)
class PayloadLimit:
    """A limit of ``most`` bytes of UTF-8 or, with the ``unit`` "characters", characters."""

    most: int
    unit: str = "bytes of UTF-8"


LIMITS = {"aws": PayloadLimit(MAX_BYTES), "2019": PayloadLimit(32_768, "characters")}
"""``2019``: what the service took until September 2020."""
_used = [LIMITS["aws"]]


def use_limits(profile: str) -> None:
    """Use the limits of a profile; raise ``KeyError`` for one that is not in ``LIMITS``."""
    _used[0] = LIMITS[profile]


def payload_limit() -> PayloadLimit:
    """Return the limit in use."""
    return _used[0]


def is_too_long(text: str) -> bool:
    """Tell whether a JSON text is larger than a payload may be."""
    used = _used[0]
    if len(text) * 4 <= used.most:
        return False
    size = len(text) if used.unit == "characters" else jsontext.byte_size(text)
    return size > used.most
