"""The cost estimate agrees with AWS's published examples."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

import engine
from console.db import clock
from console.features.metrics import cost
from console.features.metrics.models import Price
from console.models import Execution, StateMachine
from console.store.executions import redrive, step_rows
from console.store.machines import machines
from console.web.execution.header import header_of, with_figures
from console.web.history.traces import open_trace
from tests.console.store.helpers import (
    PASS,
    REGION,
    ROLE,
    WAIT,
    create,
    drain,
    ended,
    function,
    one,
    start,
)
from tests.console.web.conftest import signed_in
from tests.console.web.helpers import text

if TYPE_CHECKING:
    from console.models import Project

__all__ = ["signed_in"]


def test_the_end_of_a_run_is_a_transition(project: Project) -> None:
    """One state and the end: two transitions at 0.000025 dollars."""
    got = cost.cost_of_execution(drain(start(create(project, PASS))), state_count=1)
    assert (got.count, got.dollars) == (2, Decimal("0.00005"))
    assert got.text == "$0.000050"


def test_a_month_has_the_free_tier_and_what_express_would_cost(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """300,000 transitions are 7.40 dollars: 4,000 of them are free, as in AWS's own example."""
    machine = create(project, PASS)
    machine.created_ms -= 60_000
    execution = drain(start(machine))
    Execution.objects.filter(pk=execution.pk).update(stop_ms=execution.start_ms + 1_000)
    half_minute = execution.start_ms - 1, execution.start_ms - 1 + 17_280
    month = cost.costs_of_machine(machine, *half_minute)[
        1
    ]  # two transitions in 1/150,000 of a month
    assert (month.count, month.free) == (300_000, 4_000)
    assert month.dollars == Decimal("7.40")
    assert month.express_dollars is not None
    requests = 150_000 * Decimal("0.000001")
    held = 150_000 * Decimal("0.0625") * Decimal("0.00001667")
    assert round(month.express_dollars, 4) == round(requests + held, 4)
    assert month.too_long == 0
    Execution.objects.filter(pk=execution.pk).update(stop_ms=execution.start_ms + 300_001)
    assert cost.costs_of_machine(machine, *half_minute)[1].too_long == 100
    monkeypatch.setattr(cost, "FREE_TRANSITIONS", 400_000)
    assert cost.costs_of_machine(machine, *half_minute)[1].dollars == 0


@pytest.mark.postgres_too
def test_a_month_is_estimated_from_the_time_that_a_machine_has_existed(
    project: Project, signed_in: Any
) -> None:
    """One of an hour ago is no machine of three hours, and ten minutes are too few for a month."""
    machine = create(project, PASS)
    execution = drain(start(machine))
    editor, page = signed_in("editor"), "/machines/machine/metrics/?range=3h"

    def month(age_ms: int, ago_ms: int) -> str:
        now = clock.now_ms()
        StateMachine.objects.filter(pk=machine.pk).update(created_ms=now - age_ms)
        Execution.objects.filter(pk=execution.pk).update(start_ms=now - ago_ms)
        whole = text(editor.get(page))
        return " ".join(re.sub(r"<[^>]+>", "", whole.partition('id="month-cost">')[2]).split())

    minute = 60_000
    assert month(10 * minute, minute).startswith(
        "Too little data to estimate a month. The estimate needs 30 minutes, and this state"
        " machine has existed for 10 min of the selected time."
    )
    pace = "A month at this pace, measured over"
    assert month(60 * minute, minute).startswith(f"{pace} 1 h: $0.00 for")
    assert month(minute, 60 * minute).startswith(f"{pace} 1 h: $0.00 for")
    assert month(999 * minute, minute).startswith(f"{pace} 3 h: $0.00 for")
    until = clock.now_ms()
    machine.created_ms = until - 60 * minute
    assert cost.costs_of_machine(machine, until - 180 * minute, until)[1].count == 2 * 30 * 24


@pytest.mark.slow
def test_each_retry_is_a_transition(project: Project, worker: Any) -> None:
    """A call tried three times in one state: state, two retries, end; the machine sums the same."""
    del worker
    retry = [{"ErrorEquals": ["States.ALL"], "IntervalSeconds": 1, "MaxAttempts": 2}]
    calls = {"StartAt": "T", "States": {"T": function("nowhere", Retry=retry, End=True)}}
    machine = create(project, calls)
    execution = ended(start(machine))
    assert shown(execution) == 4
    of_all, _, looked_at = cost.costs_of_machine(machine, 0, clock.now_ms() + 1)
    assert (of_all.count, looked_at) == (4, 1)


def shown(execution: Execution) -> int:
    """Return the transitions that the execution's page shows, which are those that it charges."""
    with open_trace(execution) as trace:
        header = with_figures(header_of(execution), execution, trace)
    assert header.features["cost"].count == header.transitions
    return header.transitions


AGAIN = [{"ErrorEquals": ["States.ALL"], "IntervalSeconds": 1, "MaxAttempts": 2}]
FAILS = {"StartAt": "F", "States": {"F": {"Type": "Fail", "Error": "No"}}}
CALLS = one("T", **function("nowhere", Retry=AGAIN))
APART = {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"}
INNER = one("P", Type="Parallel", Branches=[FAILS], Retry=AGAIN)
RETRIED = {
    # a group is entered once, tried three times with all that is in it, and the execution ends
    "map": (one("M", Type="Map", ItemProcessor=FAILS, Retry=AGAIN), [1], 1 + 2 + 3 + 1),
    "parallel": (one("P", Type="Parallel", Branches=[FAILS], Retry=AGAIN), 1, 1 + 2 + 3 + 1),
    "distributed": (
        one(
            "D",
            Type="Map",
            ItemProcessor={"ProcessorConfig": APART, **FAILS},
            Retry=AGAIN,
        ),
        [1],
        1 + 2 + 1,
    ),
    # a state with two retries in an iteration
    "call": (one("M", Type="Map", MaxConcurrency=1, ItemProcessor=CALLS), [1], 1 + 1 + 2 + 1),
    "nested": (
        one(
            "M", Type="Map", ItemProcessor=one("P", Type="Parallel", Branches=[FAILS], Retry=AGAIN)
        ),
        [1],
        1 + 1 + 2 + 3 + 1,
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("shape", RETRIED)
def test_retries_of_groups_are_transitions(project: Project, worker: Any, shape: str) -> None:
    """Shown, charged and summed for the machine alike; all were charged too little, or twice."""
    del worker
    definition, data, expected = RETRIED[shape]
    machine = create(project, definition, shape)
    execution = ended(start(machine, data), 30)
    assert execution.status == "FAILED"
    of_all, *_ = cost.costs_of_machine(machine, 0, clock.now_ms() + 1)
    assert (shown(execution), of_all.count) == (expected, expected)


def test_what_a_redrive_runs_again_is_no_retry(project: Project, worker: Any) -> None:
    """The redrive is one transition, the call it makes anew none; the end counts once."""
    del worker
    machine = create(project, one("T", **function("nowhere")))
    execution = ended(start(machine))
    assert shown(execution) == 2
    redrive.redrive_execution(execution)
    execution = ended(execution)
    of_all, *_ = cost.costs_of_machine(machine, 0, clock.now_ms() + 1)
    assert (shown(execution), of_all.count) == (3, 3)


def test_what_still_runs_has_no_end_yet(project: Project) -> None:
    """Its states count, its end will."""
    machine = create(project, WAIT)
    execution = drain(start(machine))
    of_all, *_ = cost.costs_of_machine(machine, 0, clock.now_ms() + 1)
    assert (shown(execution), of_all.count) == (1, 1)


def test_a_sample_stands_for_the_rest(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the most that is looked at, the others count like the newest."""
    monkeypatch.setattr(cost, "MOST", 2)
    machine = create(project, PASS)
    for _ in range(5):
        drain(start(machine))
    of_all, _, looked_at = cost.costs_of_machine(machine, 0, clock.now_ms() + 1)
    assert (of_all.count, looked_at) == (10, 2)


def test_express_pays_for_requests_and_memory(project: Project) -> None:
    """Two seconds of 64 MB: 0.125 GB-seconds, and one request."""
    machine = machines.create_machine(
        *(project, REGION), name="quick", definition=json.dumps(PASS), role_arn=ROLE, type="EXPRESS"
    )
    execution = drain(start(machine))
    Execution.objects.filter(pk=execution.pk).update(stop_ms=execution.start_ms + 1901)
    got = cost.cost_of_execution(Execution.objects.get(pk=execution.pk), state_count=1)
    assert got.gb_seconds == Decimal("0.125")
    assert got.dollars == Decimal("0.000001") + Decimal("0.125") * Decimal("0.00001667")


@pytest.mark.postgres_too
def test_a_price_of_the_table_wins(project: Project) -> None:
    """With its own date and source."""
    Price.objects.create(name="standard_transition", dollars=1, as_of="2027-01-01", source="me")
    got = cost.cost_of_execution(drain(start(create(project, PASS))), state_count=1)
    assert got.dollars == 2
    assert (got.rate.as_of, got.rate.source) == ("2027-01-01", "me")


HARNESS = one(
    "H",
    Type="Task",
    Resource="arn:aws:states:::bedrockagentcore:invokeHarness",
    Parameters={
        "HarnessArn": "arn:aws:bedrock-agentcore:us-east-1:123456789012:harness/H-abcdef1234",
        "RuntimeSessionId": "session-of-at-least-thirty-three-characters",
        "Messages": [],
    },
)
USAGE = '{"Usage": {"InputTokens": 1000, "OutputTokens": 200, "TotalTokens": 1200}}'


@pytest.mark.parametrize(
    ("output", "tokens", "dollars"),
    [
        (USAGE, (1000, 200), Decimal("0.006")),
        ('{"Usage": {"InputTokens": "many", "OutputTokens": -1}}', (0, 0), 0),
        ('"a text"', (0, 0), 0),
    ],
)
def test_tokens_of_agents_have_a_price(
    signed_in: Any, project: Project, output: str, tokens: tuple[int, int], dollars: Decimal
) -> None:
    """Of the execution and of its machine; what no harness answers counts nothing."""
    machine = create(project, HARNESS)
    execution = drain(start(machine))
    details = {"output": output, "resource": "invokeHarness", "resourceType": "bedrockagentcore"}
    step_rows.append_events(
        execution.pk,
        [engine.Event(90, 89, 0, "TaskSucceeded", details, "H")],
    )
    got = cost.cost_of_execution(execution, state_count=0)
    assert (got.tokens.whole, got.dollars) == (tokens, dollars)
    assert ("Agents read 1,000 tokens and wrote 200." in got.about) == bool(dollars)
    moment = execution.start_ms
    of_all, month, _ = cost.costs_of_machine(machine, moment, moment + 1)
    transition = cost.read_rates()["standard_transition"].dollars
    assert (of_all.tokens.whole, of_all.dollars) == (tokens, dollars + transition)
    assert month.dollars > dollars
    page = signed_in("editor").get("/machines/machine/metrics/").content.decode()
    assert ("1,000 tokens" in page) == bool(dollars)


@pytest.mark.parametrize(("size", "billed"), [(1, 64), (62.85, 64), (64, 64), (64.1, 128)])
def test_memory_is_billed_in_blocks(size: float, billed: int) -> None:
    """62.85 MB are 64, as in the published example."""
    assert cost.billed_mb(size * cost.MB) == billed
