"""Estimate the AWS cost of executions in dollars, from the published prices.

Standard: state transitions (states entered, retries, redrives, the end of each run). Express: one
request, and memory times duration. Tokens of agents are included (``token_cost``); functions, logs
and storage are not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING

from django.db.models import Count, Min, Q, Sum

from console import arns
from console.db import rows
from console.db.prepared import read_models
from console.features.metrics.models import Price
from console.features.metrics.token_cost import NO_TOKENS, TokenUse, read_token_use
from console.models import Execution, HistoryEvent, TaskRow
from console.store.executions.transitions import count_transitions, transitions_of
from engine import event_types

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from console.models import StateMachine

MB = 1024 * 1024
BASE_MB = 50
MOST = 1000
"""The number of executions of a machine that an estimate reads."""
FREE_TRANSITIONS = 4_000
"""State transitions of Standard executions that AWS charges no account for, in each month."""
SHORTEST_PACE_MS = 30 * 60_000
"""The shortest period from which a month is estimated."""
MONTH_MS = 30 * 24 * 3_600_000
_EXPRESS_MS = 5 * 60_000
_BLOCK_MB = 64
_BLOCK_MS = 100
_AS_OF = "2026-01-01"
_SOURCE = "https://aws.amazon.com/step-functions/pricing/ (US East)"
_BUILT_IN = {
    "standard_transition": Decimal("0.000025"),
    "express_request": Decimal("0.000001"),
    "express_gb_second": Decimal("0.00001667"),
    "harness_input_token": Decimal("0.000003"),
    "harness_output_token": Decimal("0.000015"),
}
_TOKEN_SOURCE = "https://aws.amazon.com/bedrock/pricing/ (Claude Sonnet 4, US East)"


@dataclass(frozen=True, slots=True)
class PriceRate:
    """A price with its date and source."""

    dollars: Decimal
    as_of: str
    source: str


@dataclass(frozen=True, slots=True)
class Cost:
    """An estimate: ``count`` times ``unit`` (and, for Express, GB-seconds), with ``tokens``.

    ``token_rates``: prices of an input and an output token. ``below``: the descendant executions
    included, with quantities; ``below_words``: without quantities.
    """

    dollars: Decimal
    count: int
    unit: str
    gb_seconds: Decimal | None
    rate: PriceRate
    tokens: TokenUse = NO_TOKENS
    token_rates: tuple[PriceRate, ...] = ()
    below: str = ""
    below_words: str = ""

    @property
    def about(self) -> str:
        """Return a text with the date and source of the prices, and the included items."""
        read, written = self.tokens.whole
        agents = f" Agents read {read:,} tokens and wrote {written:,}." if self.token_rates else ""
        return (
            f"AWS cost, estimated with the prices of {self.rate.as_of}: {self.rate.source}.{agents}"
            f"{f' Includes {self.below}.' if self.below else ''}"
            " Functions, logs and storage are not included."
        )

    def with_tokens(self, tokens: TokenUse, rates: Mapping[str, PriceRate]) -> Cost:
        """Return the estimate plus the price of tokens."""
        if tokens == NO_TOKENS:
            return self
        prices = rates["harness_input_token"], rates["harness_output_token"]
        dollars = self.dollars + tokens.dollars(*(price.dollars for price in prices))
        return replace(self, dollars=dollars, tokens=tokens, token_rates=prices)

    @property
    def text(self) -> str:
        """Format the dollars with the significant places."""
        return f"${self.dollars:.6f}" if self.dollars < 1 else f"${self.dollars:.2f}"


@dataclass(frozen=True, slots=True)
class MonthCost:
    """The cost of a month at some rate. ``count``: transitions or requests in 30 days.

    ``free``: how many of them are in the free tier, which an account has once, not each machine.
    ``pace_ms``: the length, in milliseconds, of the period from which the month is estimated.
    ``express_dollars``: the cost of the same executions as Express, None for an Express state
    machine; ``too_long``: the share of them, in percent, that Express would end after five minutes.
    """

    dollars: Decimal
    count: int
    unit: str
    free: int
    pace_ms: int
    express_dollars: Decimal | None = None
    too_long: int = 0
    below_words: str = ""


def built_in_rates() -> dict[str, PriceRate]:
    """Return the published prices, by name."""
    return {
        name: PriceRate(dollars, _AS_OF, _TOKEN_SOURCE if "token" in name else _SOURCE)
        for name, dollars in _BUILT_IN.items()
    }


def read_rates() -> dict[str, PriceRate]:
    """Return all prices: from the table, else the built-in prices."""
    rates = built_in_rates()
    for row in read_models("prices", lambda: Price.objects.filter(name__in=_BUILT_IN)):
        rates[row.name] = PriceRate(row.dollars, row.as_of, row.source)
    return rates


def cost_of_execution(execution: Execution, state_count: int) -> Cost:
    """Estimate one execution from its number of state transitions."""
    machine, rates, text = execution.state_machine, read_rates(), execution.definition.text
    tokens = read_token_use([execution.pk], text)
    # A child has no machine of its own, nor has an imported execution.
    own = execution.imported_ms is None and arns.is_express(execution.arn)
    if own or (machine is not None and machine.type == "EXPRESS"):
        took = 0 if execution.stop_ms is None else execution.stop_ms - execution.start_ms
        size = len(text) + len(execution.input) + len(execution.output or "")
        cost = _express(1, gb_seconds(took, BASE_MB * MB + size), rates)
    else:
        cost = _standard(transitions_of(execution, state_count), rates)
    return cost.with_tokens(tokens, rates)


def costs_of_machine(machine: StateMachine, since: int, until: int) -> tuple[Cost, MonthCost, int]:
    """Estimate a state machine's executions started in [since, until), and 30 days at their rate.

    Returned with the number of executions examined: above ``MOST`` executions, the others are
    assumed to cost as much as the newest. ``since``, ``until``: epoch milliseconds. The time before
    the state machine was created does not count, unless executions were imported.
    """
    executions = Execution.objects.filter(state_machine=machine, start_ms__range=(since, until - 1))
    has_ended = ~Q(status="RUNNING") | Q(redrive_count__gt=0)
    sums = executions.aggregate(
        runs=Count("pk"),
        redrives=Sum("redrive_count"),
        ends=Count("pk", filter=has_ended),
        first=Min("start_ms"),
    )
    runs, redrives = sums["runs"], sums["redrives"] or 0
    newest = list(executions.order_by("-start_ms").values_list("pk", "start_ms", "stop_ms")[:MOST])
    spans = [stop - start for _, start, stop in newest if stop is not None]
    rates = read_rates()
    share = Decimal(runs) / len(newest) if newest else Decimal(0)
    begin = min(machine.created_ms, sums["first"] or machine.created_ms)
    pace_ms = max(until - max(since, begin), 0)
    months = Decimal(MONTH_MS) / max(pace_ms, 1)
    memory = BASE_MB * MB + len(machine.definition.text)
    gb_seconds_used = sum((gb_seconds(span, memory) for span in spans), Decimal()) * share
    tokens = read_token_use([pk for pk, _, _ in newest], machine.definition.text).times(share)
    express = _express(runs, gb_seconds_used, rates).with_tokens(tokens, rates)
    if machine.type == "EXPRESS":
        count = round(runs * months)
        month = MonthCost(express.dollars * months, count, express.unit, 0, pace_ms)
        return express, month, len(newest)
    state_count = round(states_made([pk for pk, _, _ in newest]) * share)
    cost = _standard(count_transitions(state_count, redrives, sums["ends"]), rates)
    cost = cost.with_tokens(tokens, rates)
    return cost, _month_of_standard(cost, express, spans, pace_ms), len(newest)


_NO_RATES = (PriceRate(Decimal(0), "", ""),) * 2


def _month_of_standard(cost: Cost, express: Cost, spans: Sequence[int], pace_ms: int) -> MonthCost:
    months = Decimal(MONTH_MS) / max(pace_ms, 1)
    count = round(cost.count * months)
    long = sum(span > _EXPRESS_MS for span in spans)
    of_tokens = cost.tokens.dollars(*(price.dollars for price in cost.token_rates or _NO_RATES))
    return MonthCost(
        cost.rate.dollars * max(count - FREE_TRANSITIONS, 0) + of_tokens * months,
        count,
        cost.unit,
        min(count, FREE_TRANSITIONS),
        pace_ms,
        express.dollars * months,
        math.ceil(100 * long / len(spans)) if spans else 0,
    )


def billed_ms(milliseconds: int) -> int:
    """Return the billed duration: rounded up to 100 ms."""
    return max(math.ceil(milliseconds / _BLOCK_MS), 1) * _BLOCK_MS


def billed_mb(size: float) -> int:
    """Return the billed memory in MB: bytes rounded up to 64 MB."""
    return max(math.ceil(size / (_BLOCK_MB * MB)), 1) * _BLOCK_MB


def gb_seconds(milliseconds: int, size: float) -> Decimal:
    """Return the billed product of memory (in bytes) and time."""
    return Decimal(billed_mb(size)) / 1024 * billed_ms(milliseconds) / 1000


# A Map or Parallel starts after it is entered, and after a redrive; else it is retried.
_RETRIED_GROUPS = (
    "SELECT count(*) FROM console_historyevent s JOIN console_historyevent p"
    " ON p.execution_id = s.execution_id AND p.event_id = s.previous"
    " WHERE s.execution_id IN ({marks})"
    " AND s.type IN ('MapStateStarted', 'ParallelStateStarted')"
    " AND p.type NOT IN ('MapStateEntered', 'ParallelStateEntered', 'ExecutionRedriven')"
)


def states_made(executions: Sequence[int]) -> int:
    """Count the state transitions of executions, as ``Trace.transitions`` does."""
    if not executions:
        return 0
    events = HistoryEvent.objects.filter(execution_id__in=executions)
    entered = events.filter(type__in=event_types.STATE_ENTRIES).count()
    tasks = TaskRow.objects.filter(execution_id__in=executions, attempt__gt=0)
    with rows.open_cursor() as cursor:
        marks = ",".join(["%s"] * len(executions))
        cursor.execute(_RETRIED_GROUPS.format(marks=marks), list(executions))
        groups: int = cursor.fetchone()[0]
    return entered + tasks.exclude(kind="map").count() + groups


def _standard(transitions: int, rates: Mapping[str, PriceRate]) -> Cost:
    rate = rates["standard_transition"]
    return Cost(rate.dollars * transitions, transitions, "state transitions", None, rate)


def _express(requests: int, gb_seconds_used: Decimal, rates: Mapping[str, PriceRate]) -> Cost:
    dollars = rates["express_request"].dollars * requests
    dollars += rates["express_gb_second"].dollars * gb_seconds_used
    return Cost(dollars, requests, "requests", gb_seconds_used, rates["express_gb_second"])
