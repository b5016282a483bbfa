"""Estimate the AWS cost of descendant executions: Map Run children and nested executions.

AWS bills each like any other: a Standard one by state transitions, an Express one by request,
memory and duration. At most ``MOST`` executions of each level are read; the others are assumed to
cost the same.
"""

from __future__ import annotations

import re
import time
from collections import defaultdict
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from django.db.models import Case, Q, Sum, When
from django.db.models.functions import Length

from console import arns
from console.features.metrics import cost
from console.features.metrics.token_cost import NO_TOKENS, TokenUse, read_token_use
from console.models import Definition, Execution, MapRun
from console.statuses import ExecutionStatus
from console.store.executions.transitions import count_transitions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from django.db.models import QuerySet

    from console.models import StateMachine

_kept: dict[int, tuple[float, FamilyUse]] = {}
MOST = 1000
"""The number of executions that are read per level."""
_DEEPEST = 20
_KEPT_S = 10.0
_MOST_KEPT = 500
_STARTS = re.compile(r"DISTRIBUTED|start(?:Sync)?Execution", re.IGNORECASE)
"""A pattern that matches every definition whose executions start others."""


@dataclass(slots=True)
class FamilyUse:
    """The usage of descendant executions. ``express``: the number of Express executions."""

    children: int = 0
    nested: int = 0
    express: int = 0
    transitions: Decimal = Decimal(0)
    held: Decimal = Decimal(0)
    tokens: TokenUse = field(default=NO_TOKENS)
    sampled: bool = False

    def dollars(self, rates: Mapping[str, cost.PriceRate]) -> Decimal:
        """Return the total cost."""
        prices = (rates[name].dollars for name in ("harness_input_token", "harness_output_token"))
        return (
            rates["standard_transition"].dollars * self.transitions
            + rates["express_request"].dollars * self.express
            + rates["express_gb_second"].dollars * self.held
            + self.tokens.dollars(*prices)
        )

    def with_share(self, share: Decimal) -> FamilyUse:
        """Return the usage below a multiple of the executions."""
        return FamilyUse(
            round(self.children * share),
            round(self.nested * share),
            round(self.express * share),
            self.transitions * share,
            self.held * share,
            self.tokens.times(share),
            self.sampled or share != 1,
        )

    @property
    def words(self) -> str:
        """Return the counted executions in words, "" without any."""
        kinds = ((self.children, "Map Run child", "ren"), (self.nested, "nested execution", "s"))
        parts = [
            f"{count:,} {name}{plural if count != 1 else ''}"
            for count, name, plural in kinds
            if count
        ]
        return " and ".join(parts)

    @property
    def about(self) -> str:
        """Return counted executions and quantities in words; "" without any."""
        if not self.words:
            return ""
        quantities = []
        if self.transitions:
            quantities.append(f"{round(self.transitions):,} state transitions")
        if self.express:
            held = f"{self.held.quantize(Decimal('0.001')):f} GB-seconds"
            quantities.append(f"{self.express:,} Express requests with {held}")
        sampled = f", estimated from {MOST:,} of each level" if self.sampled else ""
        return f"{self.words}: {' and '.join(quantities)}{sampled}"


def execution_page(execution: Execution, state_count: int) -> dict[str, cost.Cost]:
    """Return the cost for the execution page."""
    return {"cost": cost_with_family(execution, state_count)}


def cost_with_family(execution: Execution, state_count: int) -> cost.Cost:
    """Estimate an execution, from its state transitions, with all descendants."""
    own = cost.cost_of_execution(execution, state_count)
    if execution.imported_ms is not None or not _STARTS.search(execution.definition.text):
        return own
    return with_use(own, _recent_use(execution.pk))


def _recent_use(execution: int) -> FamilyUse:
    """Return the usage of an execution's descendants, cached for ``_KEPT_S``.

    Each poll of a page that follows an execution asks for it.
    """
    now = time.monotonic()
    entry = _kept.get(execution)
    if entry is None or entry[0] < now:
        if len(_kept) >= _MOST_KEPT:
            _kept.clear()
        entry = _kept[execution] = (now + _KEPT_S, use_below([execution]))
    return entry[1]


def with_use(own: cost.Cost, use: FamilyUse) -> cost.Cost:
    """Return an estimate plus the estimate of the descendants."""
    dollars = own.dollars + use.dollars(cost.read_rates())
    return replace(own, dollars=dollars, below=use.about, below_words=use.words)


def costs_of_machine(
    machine: StateMachine, since: int, until: int
) -> tuple[cost.Cost, cost.MonthCost, int]:
    """Return ``cost.costs_of_machine`` with the children of Map Runs.

    Nested executions belong to state machines of their own, whose estimate has them.
    """
    own, month, looked_at = cost.costs_of_machine(machine, since, until)
    if "DISTRIBUTED" not in machine.definition.text:
        return own, month, looked_at
    started = Execution.objects.filter(state_machine=machine, start_ms__range=(since, until - 1))
    newest = list(started.order_by("-start_ms").values_list("pk", flat=True)[: cost.MOST])
    share = Decimal(started.count()) / max(len(newest), 1)
    use = use_below(newest, nested=False).with_share(share)
    whole = with_use(own, use)
    months = Decimal(cost.MONTH_MS) / max(month.pace_ms, 1)
    # no Express workflow may have a distributed Map
    month = replace(
        month,
        dollars=month.dollars + (whole.dollars - own.dollars) * months,
        express_dollars=None,
        below_words=use.words,
    )
    return whole, month, looked_at


def use_below(executions: Sequence[int], *, nested: bool = True) -> FamilyUse:
    """Return the usage of all descendants of executions. ``nested``: also of nested executions."""
    use, share, level = FamilyUse(), Decimal(1), list(executions)
    for _ in range(_DEEPEST):
        if not level:
            break
        of_runs = Execution.objects.filter(map_run__parent__in=level)
        by_tasks = Execution.objects.filter(parent__in=level, map_run=None)
        started = MapRun.objects.filter(parent__in=level).aggregate(all=Sum("started"))["all"] or 0
        parts = [(of_runs.order_by("map_run", "item_index"), started, True)]
        if nested:
            parts.append((by_tasks.order_by("pk"), -1, False))
        level, shares = [], []
        for rows, count, are_children in parts:
            below, weight = _add_level(use, rows, count, share, are_children=are_children)
            level += below
            shares.append(weight)
        share *= max(shares)
    return use


def _add_level(
    use: FamilyUse,
    rows: QuerySet[Execution],
    count: int,
    share: Decimal,
    *,
    are_children: bool,
) -> tuple[list[int], Decimal]:
    """Add the executions of a level; return possible parents of the next, and their weight.

    ``count``: how many there are, -1 if that is not known yet; ``share``: the weight of the level.
    """
    columns = ("pk", "arn", "definition_id", "status", "redrive_count", "start_ms", "stop_ms")
    express = Q(arn__contains=":express:")  # of others no payload is measured
    sizes = {
        "taken": Case(When(express, then=Length("input")), default=0),
        "given": Case(When(express, then=Length("output")), default=0),
    }
    sample = list(rows.annotate(**sizes).values(*columns, *sizes)[:MOST])
    if not sample:
        return [], Decimal(1)
    count = max(count, len(sample)) if count >= 0 or len(sample) < MOST else rows.count()
    weight = Decimal(count) / len(sample)
    total = round(count * share)
    use.sampled = use.sampled or weight != 1
    use.children += total if are_children else 0
    use.nested += 0 if are_children else total
    groups: dict[tuple[str, bool], list[dict[str, Any]]] = defaultdict(list)
    for row in sample:
        groups[row["definition_id"], arns.is_express(row["arn"])].append(row)
    texts = dict(
        Definition.objects.filter(pk__in={key for key, _ in groups}).values_list("pk", "text")
    )
    below: list[int] = []
    for (definition, is_express), members in groups.items():
        text, numbers = texts.get(definition, ""), [row["pk"] for row in members]
        below += numbers if _STARTS.search(text) else []
        use.tokens += read_token_use(numbers, text).times(weight * share)
        if is_express:
            use.express += round(len(members) * weight * share)
            gb_seconds = sum((_gb_seconds(row, len(text)) for row in members), Decimal())
            use.held += gb_seconds * weight * share
        else:
            use.transitions += _transitions(members, numbers) * weight * share
    return below, weight


def _gb_seconds(row: Mapping[str, Any], definition: int) -> Decimal:
    """Return the GB-seconds of an Express execution."""
    took = 0 if row["stop_ms"] is None else row["stop_ms"] - row["start_ms"]
    size = cost.BASE_MB * cost.MB + definition + row["taken"] + (row["given"] or 0)
    return cost.gb_seconds(took, size)


def _transitions(members: Sequence[Mapping[str, Any]], numbers: Sequence[int]) -> Decimal:
    redrives = sum(row["redrive_count"] for row in members)
    ends = sum(
        row["status"] != ExecutionStatus.RUNNING or bool(row["redrive_count"]) for row in members
    )
    return Decimal(count_transitions(cost.states_made(numbers), redrives, ends))
