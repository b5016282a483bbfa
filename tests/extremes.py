"""Numbers at and beyond the bounds of what databases, clocks and protocols hold."""

from __future__ import annotations

INTEGERS = (
    *(0, -1, 99_999_999, 100_000_000),
    *(2**31 - 1, 2**31, -(2**31) - 1, 2**53, 2**63 - 1, 2**63, -(2**63) - 1, 2**64),
    *(10**30, -(10**30), 10**400, -(10**400)),
)
FLOATS = (0.5, -0.0, 1e15, 5e-324, 1e308, -1e308)
NUMBERS: tuple[float, ...] = (*INTEGERS, *FLOATS)
TEXTS = (
    *(str(number) for number in INTEGERS),
    *("1e308", "1e400", "-1e400", "NaN", "Infinity", "-0", "0x7fffffff", "1_000", "٣", "²"),
    *("9" * 25, "9" * 5_000, "", " 1", "+1", "1.5", "null", "true", "[]", "{}"),
)
