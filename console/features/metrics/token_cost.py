"""Estimate the cost of model tokens in calls of Bedrock AgentCore harnesses.

A harness returns the number of its model's input and output tokens. The price depends on the model,
which the answer does not name: the built-in prices are for the model in the documentation's
examples.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from console.models import HistoryEvent

if TYPE_CHECKING:
    from collections.abc import Sequence

HARNESS = "bedrockagentcore"
"""Type of the resource in events of harness tasks; it stands in every definition that has one."""


@dataclass(frozen=True, slots=True)
class TokenUse:
    """Input and output tokens."""

    read: Decimal = Decimal(0)
    written: Decimal = Decimal(0)

    @property
    def whole(self) -> tuple[int, int]:
        """Return the tokens rounded: shares of a sample may be fractions."""
        return round(self.read), round(self.written)

    def __add__(self, other: TokenUse) -> TokenUse:
        """Return the sum of both."""
        return TokenUse(self.read + other.read, self.written + other.written)

    def times(self, share: Decimal) -> TokenUse:
        """Return the tokens of a multiple of the executions."""
        return TokenUse(self.read * share, self.written * share)

    def dollars(self, read_price: Decimal, written_price: Decimal) -> Decimal:
        """Return the cost of the tokens; prices are for one token."""
        return self.read * read_price + self.written * written_price


NO_TOKENS = TokenUse()


def read_token_use(executions: Sequence[int], definition: str) -> TokenUse:
    """Return the tokens in the harness answers of executions; each answered attempt counts.

    ``definition``: one that names no harness has none, and nothing is read.
    """
    if HARNESS not in definition or not executions:
        return NO_TOKENS
    events = HistoryEvent.objects.filter(execution_id__in=executions, type="TaskSucceeded")
    answers = events.filter(details__contains=f'"{HARNESS}"').values_list("details", flat=True)
    counts = [_tokens(json.loads(text)) for text in answers.iterator()]
    read = sum((count[0] for count in counts), 0)
    return TokenUse(Decimal(read), Decimal(sum((count[1] for count in counts), 0)))


def _tokens(details: dict[str, str]) -> tuple[int, int]:
    """Return the tokens of one answer, which may be any JSON of a registered function."""
    if details.get("resourceType") != HARNESS:
        return 0, 0
    answer = json.loads(details.get("output") or "null")
    usage = answer.get("Usage") if isinstance(answer, dict) else None
    if not isinstance(usage, dict):
        return 0, 0
    return _count(usage.get("InputTokens")), _count(usage.get("OutputTokens"))


def _count(value: object) -> int:
    is_count = isinstance(value, int) and not isinstance(value, bool) and value > 0
    return value if is_count else 0  # type: ignore[return-value]
