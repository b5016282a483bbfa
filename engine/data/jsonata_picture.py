"""``$formatNumber`` of JSONata: format a number by an XPath picture such as ``#,##0.00``.

The rules are those of XPath and XQuery Functions and Operators 3.1, section 4.7.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Context, Decimal
from typing import TYPE_CHECKING, Any

from jsonata.jexception import JException

if TYPE_CHECKING:
    from collections.abc import Mapping

_SYMBOLS = {
    "decimal-separator": ".",
    "grouping-separator": ",",
    "exponent-separator": "e",
    "infinity": "Infinity",
    "minus-sign": "-",
    "NaN": "NaN",
    "percent": "%",
    "per-mille": "\u2030",
    "zero-digit": "0",
    "digit": "#",
    "pattern-separator": ";",
}
_FAMILY = 10
_CONTEXT = Context(prec=400)  # more digits than any double has


def format_number(value: float, picture: str, options: Mapping[str, Any] | None) -> str:
    """Format a number by a picture; ``options`` replace single symbols.

    Raises ``JException`` D3080 to D3093 for a picture that breaks a rule.
    """
    symbols = {**_SYMBOLS, **(options or {})}
    pictures = picture.split(symbols["pattern-separator"])
    if len(pictures) > 2:  # noqa: PLR2004 - one for positive numbers and one for negative ones
        raise JException("D3080", -1)
    parts = [_Picture.of(text, symbols) for text in pictures]
    chosen = parts[-1] if value < 0 else parts[0]
    prefix = chosen.prefix
    if value < 0 and len(parts) == 1:
        prefix = symbols["minus-sign"] + prefix
    if math.isnan(value):
        return str(symbols["NaN"])
    if math.isinf(value):
        return f"{prefix}{symbols['infinity']}{chosen.suffix}"
    return prefix + chosen.digits(abs(Decimal(repr(value)))) + chosen.suffix


@dataclass(frozen=True, slots=True)
class _Picture:
    """A parsed sub-picture.

    ``exponent`` is None where the picture has none. ``family``: the ten digits.
    """

    text: str
    prefix: str
    suffix: str
    mantissa: str
    integer: str
    fraction: str
    exponent: str | None
    family: str
    symbols: Mapping[str, str]

    @classmethod
    def of(cls, text: str, symbols: Mapping[str, str]) -> _Picture:
        """Parse and check a sub-picture."""
        zero = ord(symbols["zero-digit"])
        family = "".join(chr(zero + step) for step in range(_FAMILY))
        names = ("decimal-separator", "grouping-separator", "digit")
        active = family + "".join(symbols[name] for name in names)
        begin, end = _active_part(text, active, symbols["exponent-separator"])
        middle = text[begin:end]
        mantissa, separator, exponent = middle.partition(symbols["exponent-separator"])
        integer, _, fraction = mantissa.partition(symbols["decimal-separator"])
        picture = cls(
            text,
            text[:begin],
            text[end:],
            mantissa,
            integer,
            fraction,
            exponent if separator else None,
            family,
            symbols,
        )
        picture.check(middle, active)
        return picture

    def check(self, middle: str, active: str) -> None:
        """Check the rules of section 4.7.3, in their order."""
        code = self._broken_counts() or self._broken_mantissa(middle, active)
        code = code or self._broken_grouping() or self._broken_order() or self._broken_exponent()
        if code:
            raise JException(code, -1)

    def _broken_counts(self) -> str:
        percent, per_mille = self.symbols["percent"], self.symbols["per-mille"]
        if self.text.count(self.symbols["decimal-separator"]) > 1:
            return "D3081"
        if self.text.count(percent) > 1:
            return "D3082"
        if self.text.count(per_mille) > 1:
            return "D3083"
        return "D3084" if percent in self.text and per_mille in self.text else ""

    def _broken_mantissa(self, middle: str, active: str) -> str:
        digits = self.family + self.symbols["digit"]
        allowed = active + self.symbols["exponent-separator"]
        broken = ""
        if not any(char in digits for char in self.mantissa):
            broken = "D3085"
        if any(char not in allowed for char in middle):
            broken = "D3086"
        return broken

    def _broken_grouping(self) -> str:
        group, point = self.symbols["grouping-separator"], self.symbols["decimal-separator"]
        if point in self.text and (group + point in self.text or point + group in self.text):
            return "D3087"
        if point not in self.text and self.integer.endswith(group):
            return "D3088"
        return "D3089" if group * 2 in self.text else ""

    def _broken_order(self) -> str:
        optional = self.symbols["digit"]
        integer = [char for char in self.integer if char in self.family + optional]
        if "".join(integer).lstrip(optional).count(optional):
            return "D3090"
        fraction = [char for char in self.fraction if char in self.family + optional]
        return "D3091" if "".join(fraction).rstrip(optional).count(optional) else ""

    def _broken_exponent(self) -> str:
        if self.exponent is None:
            return ""
        if self.exponent and any(
            self.symbols[name] in self.text for name in ("percent", "per-mille")
        ):
            return "D3092"
        wrong = not self.exponent or any(char not in self.family for char in self.exponent)
        return "D3093" if wrong else ""

    # -- formatting --------------------------------------------------------------------------------

    def digits(self, value: Decimal) -> str:
        """Format a non-negative number with grouping and exponent."""
        if self.symbols["percent"] in self.text:
            value *= 100
        elif self.symbols["per-mille"] in self.text:
            value *= 1000
        value, exponent = self._scaled(value)
        least_whole, least, most = self._sizes()
        text = f"{value.quantize(Decimal(1).scaleb(-most), ROUND_HALF_EVEN, _CONTEXT):f}"
        whole, _, rest = text.partition(".")
        whole = whole.lstrip("0").rjust(least_whole, "0")
        rest = rest.rstrip("0").ljust(least, "0")
        shown = self._translated(self._grouped_whole(whole))
        if rest:
            shown += self.symbols["decimal-separator"]
            shown += self._translated(self._grouped_rest(rest))
        if self.exponent is None:
            return shown
        power = str(abs(exponent)).rjust(len(self.exponent), "0")
        sign = self.symbols["minus-sign"] if exponent < 0 else ""
        return shown + self.symbols["exponent-separator"] + sign + self._translated(power)

    def _count(self, text: str, *, optional: bool = False) -> int:
        extra = self.symbols["digit"] if optional else ""
        return sum(char in self.family + extra for char in text)

    def _sizes(self) -> tuple[int, int, int]:
        """Return the minimum integer digits, and the minimum and maximum fraction digits."""
        whole = self._count(self.integer)
        least, most = self._count(self.fraction), self._count(self.fraction, optional=True)
        if whole == 0 and most == 0:
            if self.exponent is None:
                whole = 1
            else:
                least = most = 1
        if self.exponent is not None and whole == 0 and self.symbols["digit"] in self.integer:
            whole = 1
        if whole == 0 and least == 0:
            least = 1
        return whole, least, max(most, least)

    def _scaled(self, value: Decimal) -> tuple[Decimal, int]:
        if self.exponent is None or not value:
            return value, 0
        shift = value.adjusted() + 1 - self._count(self.integer)
        return value.scaleb(-shift), shift

    def _grouped_whole(self, digits: str) -> str:
        group = self.symbols["grouping-separator"]
        places = [
            self._count(self.integer[index:], optional=True)
            for index, char in enumerate(self.integer)
            if char == group
        ]
        regular = _regular(places)
        if regular:
            places = list(range(regular, len(digits), regular))
        for place in sorted(places):
            cut = len(digits) - place - sum(other < place for other in places)
            if cut > 0:
                digits = digits[:cut] + group + digits[cut:]
        return digits

    def _grouped_rest(self, digits: str) -> str:
        group = self.symbols["grouping-separator"]
        places = [
            self._count(self.fraction[:index], optional=True)
            for index, char in enumerate(self.fraction)
            if char == group
        ]
        for place in sorted(places, reverse=True):
            if place < len(digits):
                digits = digits[:place] + group + digits[place:]
        return digits

    def _translated(self, text: str) -> str:
        return "".join(self.family[int(char)] if char in "0123456789" else char for char in text)


def _active_part(text: str, active: str, exponent: str) -> tuple[int, int]:
    """Return the start and end of the digits; the whole text if there are none."""
    begin = next((index for index, char in enumerate(text) if char in active), None)
    if begin is None:
        return 0, len(text)
    return begin, max(index for index, char in enumerate(text) if char in active + exponent) + 1


def _regular(places: list[int]) -> int:
    """Return the distance between separators at regular positions, else 0."""
    step = math.gcd(*places) if places else 0
    regular = {step * number for number in range(1, len(places) + 1)}
    return step if step and set(places) == regular else 0
