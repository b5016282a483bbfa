"""The limits of AWS that a history comes near."""

from __future__ import annotations

from typing import Any

import pytest

import engine
from engine import LimitAhead, LimitKind, Trace

_LIMIT = 262_144


def folded(definition: dict[str, Any], data: Any, **options: Any) -> Trace:
    """Run a definition in memory, and return the trace of its history."""
    text = engine.dumps(definition)
    trace = Trace(engine.build_graph(engine.parse(text)))
    trace.feed(engine.run(text, data, **options).events)
    return trace


def pass_only(**fields: Any) -> dict[str, Any]:
    """Return a definition with one Pass."""
    return {"StartAt": "Only", "States": {"Only": {"Type": "Pass", "End": True, **fields}}}


def sized(size: int, letter: str = "x") -> str:
    """Return a string whose JSON text has so many characters."""
    return letter * (size - 2)


def of_kind(limits: list[LimitAhead], kind: LimitKind) -> list[LimitAhead]:
    """Return the limits of a kind."""
    return [limit for limit in limits if limit.kind is kind]


@pytest.mark.parametrize(
    ("size", "near"), [(_LIMIT * 80 // 100 - 1, False), (_LIMIT * 80 // 100, True), (_LIMIT, True)]
)
def test_a_payload_is_near_from_80_percent_on(size: int, *, near: bool) -> None:
    """The size of the JSON text counts, not of its form inside the event."""
    limits = engine.limits_ahead(folded(pass_only(), sized(size)))
    subjects = {(limit.state, limit.subject) for limit in limits}
    whole = {("", "input"), ("Only", "input"), ("Only", "output"), ("", "output")}
    assert subjects == (whole if near else set())
    assert {limit.value for limit in limits} == ({size} if near else set())


def test_a_payload_counts_in_bytes() -> None:
    """Characters of three bytes count three times, and escapes of the event do not count."""
    (most,) = {limit.value for limit in engine.limits_ahead(folded(pass_only(), "あ" * 80_000))}
    assert most == 240_002
    assert not engine.limits_ahead(folded(pass_only(), '"' * 70_000))  # 140,002 bytes


def test_the_largest_payload_of_a_state_is_shown() -> None:
    """A loop has many; the event of the largest one is named."""
    grown = {"text.$": "States.Format('{}x', $.text)", "n.$": "States.MathAdd($.n, 1)"}
    more = {"Variable": "$.n", "NumericLessThan": 3, "Next": "Grow"}
    definition = {
        "StartAt": "Grow",
        "States": {
            "Grow": {"Type": "Pass", "Parameters": grown, "Next": "More"},
            "More": {"Type": "Choice", "Choices": [more], "Default": "Done"},
            "Done": {"Type": "Succeed"},
        },
    }
    trace = folded(definition, {"text": sized(220_000), "n": 0})
    (output,) = [
        limit
        for limit in engine.limits_ahead(trace)
        if (limit.state, limit.subject) == ("Grow", "output")
    ]
    last = [
        event for event in trace.payloads if trace.kind_of(event) == ("PassStateExited", "Grow")
    ]
    assert (len(last), output.event) == (3, last[-1])
    assert output.percent == output.value * 100 // _LIMIT
    assert output.words == f"Output of Grow: {output.value / 1024:.0f} KiB of 256 KiB"
    assert output.as_json() == {
        "kind": "payload",
        "state": "Grow",
        "subject": "output",
        "event": output.event,
        "value": output.value,
        "limit": _LIMIT,
        "unit": "bytes",
        "percent": output.percent,
    }


def test_arguments_and_results_of_a_task_count() -> None:
    """The payload of a call and of its answer are those of the state."""
    arn = "arn:aws:lambda:us-east-1:123456789012:function:grow"
    definition = {
        "StartAt": "Call",
        "States": {"Call": {"Type": "Task", "Resource": arn, "ResultPath": None, "End": True}},
    }
    trace = folded(definition, {}, tasks={"Call": lambda _: sized(250_000)})
    assert [(limit.state, limit.subject) for limit in engine.limits_ahead(trace)] == [
        ("Call", "result")
    ]


def test_a_long_history_is_near() -> None:
    """A loop that does not end fails after 25,000 events; 20,000 are near."""
    definition = {
        "StartAt": "Again",
        "States": {
            "Again": {
                "Type": "Pass",
                "Parameters": {"n.$": "States.MathAdd($.n, 1)"},
                "Next": "More",
            },
            "More": {
                "Type": "Choice",
                "Choices": [{"Variable": "$.n", "NumericLessThan": 4_999, "Next": "Again"}],
                "Default": "Done",
            },
            "Done": {"Type": "Succeed"},
        },
    }
    trace = folded(definition, {"n": 0})
    (limit,) = of_kind(engine.limits_ahead(trace), LimitKind.HISTORY)
    assert (limit.value, limit.limit) == (trace.last, 25_000)
    assert trace.last >= 20_000
    assert limit.words == f"History: {trace.last:,} of 25,000 events"
    short = folded(definition, {"n": 4_000})
    assert not of_kind(engine.limits_ahead(short), LimitKind.HISTORY)


@pytest.mark.parametrize(("days", "words"), [(291, None), (292, "292 d"), (364, "364 d")])
def test_an_execution_near_a_year_is_near(days: int, words: str | None) -> None:
    """Of a running execution the present time counts."""
    trace = folded(pass_only(), {}, start_ms=0)
    limits = engine.limits_ahead(trace, now_ms=days * 86_400_000)
    assert [limit.words for limit in limits] == ([f"Duration: {words} of 365 d"] if words else [])
    assert not engine.limits_ahead(trace)


def test_express_has_a_limit_of_its_own() -> None:
    """The caller says how long an execution may take."""
    trace = folded(pass_only(), {}, start_ms=0)
    limits = engine.limits_ahead(trace, now_ms=270_000, longest_ms=300_000)
    assert [limit.words for limit in limits] == ["Duration: 4 min of 5 min"]


@pytest.mark.parametrize(
    ("items", "concurrency", "most"),
    [(31, 0, None), (32, 0, 32), (200, 0, 40), (200, 31, None), (200, 35, 35)],
)
def test_a_map_near_its_concurrency(items: int, concurrency: int, most: int | None) -> None:
    """It counts how many iterations ran at a time, not how many there were."""
    each = {"StartAt": "In", "States": {"In": {"Type": "Wait", "Seconds": 1, "End": True}}}
    fields = {"ItemProcessor": each, "MaxConcurrency": concurrency, "End": True}
    definition = {"StartAt": "Each", "States": {"Each": {"Type": "Map", **fields}}}
    limits = engine.limits_ahead(folded(definition, list(range(items))))
    assert [(limit.kind, limit.state, limit.value) for limit in limits] == (
        [(LimitKind.ITERATIONS, "Each", most)] if most else []
    )


def test_concurrent_outer_iterations_do_not_add_up() -> None:
    """Each run of an inner Map has 40 iterations of its own."""
    wait = {"StartAt": "In", "States": {"In": {"Type": "Wait", "Seconds": 1, "End": True}}}
    inner = {
        "StartAt": "Inner",
        "States": {"Inner": {"Type": "Map", "ItemProcessor": wait, "End": True}},
    }
    definition = {
        "StartAt": "Outer",
        "States": {"Outer": {"Type": "Map", "ItemProcessor": inner, "End": True}},
    }
    trace = folded(definition, [[1] * 20] * 10)
    assert {trace.graph.by_id[node].name: most for node, most in trace.widest.items()} == {
        "Outer": 10,
        "Inner": 20,
    }
    assert engine.limits_ahead(trace) == []


def test_children_of_a_map_run_are_of_the_caller() -> None:
    """The history of the parent does not tell them."""
    trace = folded(pass_only(), {})
    (node,) = trace.graph.nodes
    assert not engine.limits_ahead(trace, children={node.id: 7_999})
    (limit,) = engine.limits_ahead(trace, children={node.id: 9_000})
    assert limit.words == "Only: 9,000 child executions at a time, of 10,000"


def test_transitions_within_a_second_count_against_a_rate() -> None:
    """Only where the caller says that the times are real, and what the rate is."""
    each = {"StartAt": "In", "States": {"In": {"Type": "Pass", "End": True}}}
    fields = {"ItemProcessor": each, "MaxConcurrency": 10, "End": True}
    definition = {"StartAt": "Each", "States": {"Each": {"Type": "Map", **fields}}}
    trace = folded(definition, list(range(650)))
    assert not engine.limits_ahead(trace)
    (limit,) = engine.limits_ahead(trace, transition_rate=800)
    assert (limit.kind, limit.value, limit.percent) == (LimitKind.TRANSITIONS, 651, 81)


def test_the_nearest_limit_comes_first() -> None:
    """By the share of the limit."""
    trace = folded(pass_only(), sized(_LIMIT), start_ms=0)
    limits = engine.limits_ahead(trace, now_ms=300 * 86_400_000)
    assert limits[-1].kind is LimitKind.DURATION
    assert [limit.percent for limit in limits] == sorted(
        (limit.percent for limit in limits), reverse=True
    )


def test_a_trace_without_events_is_near_nothing() -> None:
    """An execution that has not begun."""
    trace = Trace(engine.build_graph(engine.parse(engine.dumps(pass_only()))))
    assert engine.limits_ahead(trace, now_ms=10**15) == []
