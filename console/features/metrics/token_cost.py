"""Estimate what the tokens of agents cost that executions spoke to.

A harness of Bedrock AgentCore answers how many tokens its model read and wrote. The price of a
token depends on the model, which the answer does not name: the built-in prices are those of the
model that the documentation's examples use.
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
"""Type of the resource in events of such tasks; it stands in every definition that has one."""


@dataclass(frozen=True, slots=True)
class TokenUse:
    """Tokens that models read (``given``) and wrote (``made``)."""

    given: Decimal = Decimal(0)
    made: Decimal = Decimal(0)

    @property
    def whole(self) -> tuple[int, int]:
        """Return the tokens as whole numbers: a share of a sample need be none."""
        return round(self.given), round(self.made)

    def __add__(self, other: TokenUse) -> TokenUse:
        """Return the tokens of both."""
        return TokenUse(self.given + other.given, self.made + other.made)

    def times(self, share: Decimal) -> TokenUse:
        """Return what so many times as many executions use."""
        return TokenUse(self.given * share, self.made * share)

    def dollars(self, given: Decimal, made: Decimal) -> Decimal:
        """Return what they cost; ``given`` and ``made``: the prices of one token."""
        return self.given * given + self.made * made


NO_TOKENS = TokenUse()


def read_token_use(executions: Sequence[int], definition: str) -> TokenUse:
    """Return the tokens that the harnesses of executions answered; each try that answered counts.

    ``definition``: one that names no harness has none, and nothing is read.
    """
    if HARNESS not in definition or not executions:
        return NO_TOKENS
    events = HistoryEvent.objects.filter(execution_id__in=executions, type="TaskSucceeded")
    found = events.filter(details__contains=f'"{HARNESS}"').values_list("details", flat=True)
    counts = [_tokens(json.loads(text)) for text in found.iterator()]
    given = sum((count[0] for count in counts), 0)
    return TokenUse(Decimal(given), Decimal(sum((count[1] for count in counts), 0)))


def _tokens(details: dict[str, str]) -> tuple[int, int]:
    """Return the tokens of one answer: a registered function may answer anything."""
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
