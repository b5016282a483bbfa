"""The picture of a machine, and the colours an execution gives it."""

from __future__ import annotations

from typing import Any

import pytest

import engine
from engine.graph import condition_words

PASS = {"Type": "Pass", "End": True}
CALL = {
    "Type": "Task",
    "Resource": "arn:aws:lambda:us-east-1:123456789012:function:Call",
}
CAUGHT = {"Catch": [{"ErrorEquals": ["States.ALL"], "Next": "Rescue"}]}


def machine(states: dict[str, Any], start: str | None = None) -> dict[str, Any]:
    """Return a definition."""
    return {"StartAt": start or next(iter(states)), "States": states}


def drawn(definition: dict[str, Any]) -> engine.Graph:
    """Return the picture of a definition."""
    return engine.build_graph(engine.parse(engine.dumps(definition)))


def colours(
    definition: dict[str, Any], events: tuple[engine.Event, ...] | list[engine.Event]
) -> dict[str, str]:
    """Return state name -> status."""
    picture = drawn(definition)
    painted = engine.paint(picture, events)
    return {picture.by_id[node].name: status for node, status in painted.items()}


def played(definition: dict[str, Any], data: Any = None, **tasks: Any) -> tuple[engine.Event, ...]:
    """Return the history of a run in memory."""
    return engine.run(definition, data, tasks).events


def broken(_: Any) -> Any:
    """Fail, as a task."""
    raise ValueError("no")


def failing(times: int) -> Any:
    """Return a task that fails so many times and then answers."""
    failures = [times]

    def task(value: Any) -> Any:
        failures[0] -= 1
        if failures[0] >= 0:
            raise ValueError("not yet")
        return value

    return task


def until(events: tuple[engine.Event, ...], kind: str, nth: int = 1) -> list[engine.Event]:
    """Return the history up to and including the nth event of a type."""
    places = [place for place, event in enumerate(events) if event.type == kind]
    return list(events[: places[nth - 1] + 1])


def stopped(events: list[engine.Event], kind: str = "ExecutionAborted") -> list[engine.Event]:
    """Return the history with an end from outside."""
    last = events[-1]
    return [*events, engine.Event(last.id + 1, 0, last.at_ms + 5, kind, {})]


PARALLEL = machine(
    {
        "Both": {
            "Type": "Parallel",
            "Branches": [
                machine({"Left": {**CALL, "End": True}}),
                machine({"Wait": {"Type": "Wait", "Seconds": 5, "Next": "Right"}, "Right": PASS}),
            ],
            **CAUGHT,
            "End": True,
        },
        "Rescue": PASS,
    }
)
EACH = machine(
    {
        "Each": {
            "Type": "Map",
            "MaxConcurrency": 1,
            "ItemProcessor": machine(
                {"Work": {**CALL, "Next": "Done"}, "Done": PASS},
            ),
            "End": True,
        }
    }
)


# -- the picture -----------------------------------------------------------------------------------


def test_every_state_is_drawn_with_the_nested_ones() -> None:
    """States of branches and item processors are nodes of their own groups."""
    picture = drawn(PARALLEL)
    assert [node.name for node in picture.nodes] == ["Both", "Left", "Wait", "Right", "Rescue"]
    assert [(group.owner, group.index) for group in picture.groups] == [
        ("", 0),
        ("n1", 0),
        ("n1", 1),
    ]
    assert picture.by_id[picture.by_name["Right"]].group == "b2"


def test_ids_are_opaque() -> None:
    """Whatever a state is called, its id is n and a number."""
    name = '"><script>'
    picture = drawn(machine({name: PASS}))
    assert picture.nodes[0].id == "n1"
    assert picture.by_name == {name: "n1"}


def test_transitions_know_their_kind_and_their_condition() -> None:
    """Next, choice, default and catch are told apart; conditions are labels."""
    definition = machine(
        {
            "Pick": {
                "Type": "Choice",
                "Choices": [{"Variable": "$.n", "NumericGreaterThan": 1, "Next": "Call"}],
                "Default": "Rescue",
            },
            "Call": {**CALL, **CAUGHT, "Next": "Last"},
            "Rescue": PASS,
            "Last": {"Type": "Succeed"},
        }
    )
    picture = drawn(definition)
    names = {node.id: node.name for node in picture.nodes}
    assert [(names[e.source], names[e.target], e.kind, e.label) for e in picture.edges] == [
        ("Pick", "Call", "choice", "$.n > 1"),
        ("Pick", "Rescue", "default", "default"),
        ("Call", "Last", "next", ""),
        ("Call", "Rescue", "catch", "States.ALL"),
    ]
    assert {node.name for node in picture.nodes if node.ends} == {"Rescue", "Last"}


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ({"Variable": "$.a", "StringEquals": "x"}, '$.a == "x"'),
        ({"Variable": "$.a", "NumericLessThanEquals": 3}, "$.a <= 3"),
        ({"Variable": "$.a", "NumericGreaterThanEqualsPath": "$.b"}, "$.a >= $.b"),
        ({"Variable": "$.a", "IsPresent": False}, "$.a is not present"),
        ({"Variable": "$.a", "StringMatches": "*.log"}, '$.a matches "*.log"'),
        ({"Not": {"Variable": "$.a", "IsNull": True}}, "not $.a is null"),
        (
            {
                "And": [
                    {"Variable": "$.a", "BooleanEquals": True},
                    {"Or": [{"Variable": "$.b", "IsString": True}]},
                ]
            },
            "$.a == true and ($.b is a string)",
        ),
        ({"Condition": "{% $states.input.n > 1 %}"}, "$states.input.n > 1"),
    ],
)
def test_conditions_read_as_words(rule: dict[str, Any], words: str) -> None:
    """A Choice rule is written as one would say it."""
    assert condition_words(rule) == words


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ({**CALL, "End": True}, "lambda: Call"),
        (
            {
                "Type": "Task",
                "Resource": "arn:aws:states:us-east-1:123456789012:activity:Add",
                "End": True,
            },
            "activity: Add",
        ),
        ({"Type": "Wait", "Seconds": 20, "End": True}, "20 s"),
        ({"Type": "Wait", "SecondsPath": "$.s", "End": True}, "$.s s"),
        ({"Type": "Fail", "Error": "Oops"}, "Oops"),
        (PASS, ""),
    ],
)
def test_a_state_says_what_it_does(state: dict[str, Any], words: str) -> None:
    """The small line under a name tells function, activity, time or error."""
    assert drawn(machine({"One": state})).nodes[0].detail == words


# -- the colours -----------------------------------------------------------------------------------


def test_what_was_not_entered_has_no_status() -> None:
    """A state that the execution went past is absent from the result."""
    definition = machine(
        {
            "Pick": {
                "Type": "Choice",
                "Choices": [{"Variable": "$.n", "NumericEquals": 1, "Next": "One"}],
                "Default": "Other",
            },
            "One": PASS,
            "Other": PASS,
        }
    )
    assert colours(definition, played(definition, {"n": 1})) == {
        "Pick": "succeeded",
        "One": "succeeded",
    }


def test_a_state_runs_until_it_is_left() -> None:
    """Between entry and exit a state is running."""
    definition = machine({"First": {"Type": "Pass", "Next": "Nap"}, "Nap": {**PASS}})
    events = played(definition)
    assert colours(definition, until(events, "PassStateEntered", 2)) == {
        "First": "succeeded",
        "Nap": "running",
    }


def test_a_retried_task_stays_running_and_then_succeeds() -> None:
    """A failed attempt does not make a state failed while Retry has it."""
    definition = machine(
        {"Call": {**CALL, "Retry": [{"ErrorEquals": ["States.ALL"]}], "End": True}}
    )
    events = played(definition, Call=failing(2))
    assert colours(definition, until(events, "LambdaFunctionFailed", 2)) == {"Call": "running"}
    assert colours(definition, events) == {"Call": "succeeded"}
    trace = engine.Trace(drawn(definition))
    trace.feed(events)
    assert trace.visits["n1"][0].attempts == 3


def test_a_caught_error_is_orange() -> None:
    """A state whose error Catch took is neither failed nor succeeded."""
    definition = machine({"Call": {**CALL, **CAUGHT, "End": True}, "Rescue": PASS})
    assert colours(definition, played(definition, Call=broken)) == {
        "Call": "caught",
        "Rescue": "succeeded",
    }


def test_an_uncaught_error_is_red() -> None:
    """The state that ended the execution is failed, and is its culprit."""
    definition = machine(
        {"Before": {"Type": "Pass", "Next": "Call"}, "Call": {**CALL, "End": True}}
    )
    events = played(definition, Call=broken)
    assert colours(definition, events) == {"Before": "succeeded", "Call": "failed"}
    trace = engine.Trace(drawn(definition))
    trace.feed(events)
    assert trace.culprit is trace.visits["n2"][0]


def test_a_fail_state_is_red_although_it_has_no_exit() -> None:
    """Fail has no ...StateExited; it is failed as soon as it is entered."""
    definition = machine({"No": {"Type": "Fail", "Error": "Oops"}})
    assert colours(definition, played(definition)) == {"No": "failed"}


def test_a_runtime_error_makes_its_state_failed() -> None:
    """The interpreter's own errors have no ...Failed event of the state."""
    definition = machine({"Look": {"Type": "Pass", "InputPath": "$.nothing", "End": True}})
    assert colours(definition, played(definition)) == {"Look": "failed"}


def test_the_sibling_of_a_failed_branch_is_aborted() -> None:
    """In a caught Parallel the failed branch is red, its sibling grey, the Parallel orange."""
    events = played(PARALLEL, Left=broken)
    assert colours(PARALLEL, events) == {
        "Both": "caught",
        "Left": "failed",
        "Wait": "aborted",
        "Rescue": "succeeded",
    }


def test_a_retried_parallel_forgets_its_failed_attempt() -> None:
    """After a retry only the last attempt counts."""
    retried = {"Retry": [{"ErrorEquals": ["States.ALL"], "IntervalSeconds": 1}]}
    both = {**PARALLEL["States"]["Both"], **retried}
    definition = machine({"Both": both, "Rescue": PASS})
    events = played(definition, Left=failing(1))
    assert colours(definition, events) == dict.fromkeys(
        ["Both", "Left", "Wait", "Right"], "succeeded"
    )
    waiting = until(events, "LambdaFunctionFailed")
    assert colours(definition, waiting)["Both"] == "running"


def test_a_map_shows_the_most_telling_iteration() -> None:
    """While one iteration works the state is running, whatever the others did."""
    events = played(EACH, [1, 2, 3], Work=lambda value: value)
    running = until(events, "LambdaFunctionStarted", 2)
    assert colours(EACH, running) == {"Each": "running", "Work": "running", "Done": "succeeded"}
    assert colours(EACH, events) == dict.fromkeys(["Each", "Work", "Done"], "succeeded")
    trace = engine.Trace(drawn(EACH))
    trace.feed(running)
    progress = trace.progress("n1")
    assert progress is not None
    assert (progress.done, progress.started, progress.total) == (1, 2, 3)
    assert [visit.iteration for visit in trace.visits["n2"]] == [(0,), (1,)]


def test_what_readers_derive_is_made_once_until_the_next_event() -> None:
    """For the arguments it was asked with last; an event makes it anew."""
    events = played(EACH, [1, 2, 3], Work=lambda value: value)
    trace = engine.Trace(drawn(EACH))
    derivations: list[int] = []

    def make() -> int:
        derivations.append(trace.last)
        return trace.last

    def derived(arguments: object) -> int:
        return trace.derive("visits", arguments, make)

    trace.feed(events[:5])
    assert (derived(1), derived(1), derivations) == (5, 5, [5])
    assert (derived(2), derived(1), derivations) == (5, 5, [5, 5, 5])
    trace.feed(events[5:])
    assert (derived(1), derivations[3:]) == (len(events), [len(events)])


def test_the_culprit_of_a_map_is_the_state_inside() -> None:
    """The failing step is the innermost one, in its iteration."""

    def third(value: Any) -> Any:
        if value == 3:
            raise ValueError("three")
        return value

    events = played(EACH, [1, 2, 3, 4], Work=third)
    assert colours(EACH, events) == {"Each": "failed", "Work": "failed", "Done": "succeeded"}
    trace = engine.Trace(drawn(EACH))
    trace.feed(events)
    assert trace.culprit is not None
    assert (trace.culprit.node, trace.culprit.iteration) == ("n2", (2,))


def test_open_iterations_of_a_failed_map_are_aborted() -> None:
    """Concurrent iterations that were still open when one failed are grey."""
    each = {**EACH["States"]["Each"]}
    del each["MaxConcurrency"]
    definition = machine({"Each": each})
    events = played(definition, [1, 2], Work=broken)
    trace = engine.Trace(drawn(definition))
    trace.feed(events)
    assert dict(trace.counts()["n2"]) == {"failed": 1, "aborted": 1}


def test_a_retried_map_starts_with_a_clean_slate() -> None:
    """Iterations of the attempt before do not colour the retried one."""
    retried = {"Retry": [{"ErrorEquals": ["States.ALL"], "IntervalSeconds": 1}]}
    definition = machine({"Each": {**EACH["States"]["Each"], **retried}})
    events = played(definition, [1, 2], Work=failing(1))
    assert colours(definition, events) == dict.fromkeys(["Each", "Work", "Done"], "succeeded")
    trace = engine.Trace(drawn(definition))
    trace.feed(events)
    assert dict(trace.counts()["n2"]) == {"succeeded": 2}
    assert len(trace.visits["n2"]) == 3


def test_a_restarted_map_takes_back_what_it_painted() -> None:
    """States that only the failed attempt entered are blank again, and reported as changed."""
    rule = {"Variable": "$", "NumericEquals": 2, "Next": "Bad"}
    work = {"Type": "Choice", "Choices": [rule], "Default": "Good"}
    states = {"Look": {**CALL, "Next": "Pick"}, "Pick": work, "Good": PASS, "Bad": {"Type": "Fail"}}
    retried = {"Retry": [{"ErrorEquals": ["States.ALL"], "IntervalSeconds": 1}]}
    each = {"Type": "Map", "ItemProcessor": machine(states), "End": True, **retried}
    definition = machine({"Each": each})
    answers = iter([1, 2, 1, 1])
    events = played(definition, [0, 0], Look=lambda _: next(answers))
    trace = engine.Trace(drawn(definition))
    trace.feed(until(events, "MapIterationFailed"))
    bad = trace.graph.by_name["Bad"]
    assert trace.statuses()[bad] == "failed"
    cursor = trace.last
    trace.feed(events[cursor:])
    assert bad not in trace.statuses()
    assert bad in trace.changes(cursor)
    assert (trace.graph.by_name["Pick"], bad) not in trace.taken


def test_a_map_inside_a_parallel_inside_a_map() -> None:
    """Nesting of any depth is coloured."""
    inner = {"Type": "Map", "ItemProcessor": machine({"Deep": PASS}), "End": True}
    both = {
        "Type": "Parallel",
        "Branches": [machine({"Inner": inner}), machine({"Beside": PASS})],
        "End": True,
    }
    definition = machine(
        {"Outer": {"Type": "Map", "ItemProcessor": machine({"Both": both}), "End": True}}
    )
    events = played(definition, [[1, 2], [3]])
    assert colours(definition, events) == dict.fromkeys(
        ["Outer", "Both", "Inner", "Deep", "Beside"], "succeeded"
    )
    trace = engine.Trace(drawn(definition))
    trace.feed(events)
    deep = trace.graph.by_name["Deep"]
    assert [visit.iteration for visit in trace.visits[deep]] == [(0, 0), (0, 1), (1, 0)]
    counts = {name: dict(trace.counts()[node]) for name, node in trace.graph.by_name.items()}
    inside = {key: {"succeeded": 2} for key in ["Both", "Inner", "Beside"]}
    assert counts == {"Outer": {"succeeded": 1}, **inside, "Deep": {"succeeded": 3}}
    assert {
        name: dict(trace.counts()[node]) for name, node in trace.graph.by_name.items()
    } == counts


@pytest.mark.parametrize(
    ("kind", "status"), [("ExecutionAborted", "aborted"), ("ExecutionTimedOut", "timed_out")]
)
def test_what_was_open_when_the_execution_was_stopped_says_why(kind: str, status: str) -> None:
    """A stop turns every running state grey, a timeout red, nested ones too."""
    events = stopped(until(played(PARALLEL, Left=lambda _: 1), "WaitStateEntered"), kind)
    assert colours(PARALLEL, events)["Both"] == status
    assert colours(PARALLEL, events)["Wait"] == status


def test_a_loop_shows_the_latest_visit() -> None:
    """A state that failed and was caught, then succeeded on the next round, is green."""
    definition = machine(
        {
            "Call": {
                **CALL,
                "Catch": [{"ErrorEquals": ["States.ALL"], "Next": "Nap"}],
                "End": True,
            },
            "Nap": {"Type": "Wait", "Seconds": 1, "Next": "Call"},
        }
    )
    events = played(definition, Call=failing(2))
    assert colours(definition, events) == {"Call": "succeeded", "Nap": "succeeded"}
    trace = engine.Trace(drawn(definition))
    trace.feed(events)
    assert [visit.status for visit in trace.visits["n1"]] == ["caught", "caught", "succeeded"]


def test_the_ways_taken_are_known() -> None:
    """A transition counts as taken when an entry follows an exit."""
    events = played(PARALLEL, Left=broken)
    trace = engine.Trace(drawn(PARALLEL))
    trace.feed(events)
    names = {node.id: node.name for node in trace.graph.nodes}
    assert {(names.get(a, a), names.get(b, b)) for a, b in trace.taken} == {
        ("start", "Both"),
        ("Both", "Rescue"),
        ("Rescue", "end"),
    }


def test_portions_give_the_same_as_the_whole() -> None:
    """Feeding event by event ends where feeding at once ends, and tells what changed."""
    events = played(PARALLEL, Left=broken)
    whole, portions = engine.Trace(drawn(PARALLEL)), engine.Trace(drawn(PARALLEL))
    whole.feed(events)
    for event in events:
        portions.feed([event])
    assert portions.statuses() == whole.statuses()
    last = portions.last
    assert portions.changes(last) == set()
    assert portions.changes(0) == set(portions.statuses())


def test_an_event_of_an_unknown_state_changes_nothing() -> None:
    """A history that does not fit the definition is not worth an exception."""
    definition = machine({"One": PASS})
    alien = engine.Event(1, 0, 0, "PassStateEntered", {}, "Elsewhere")
    assert colours(definition, [alien]) == {}


def test_an_error_that_nothing_takes_is_red_inside_of_a_group() -> None:
    """The service writes no event of the Parallels and Maps around it; its siblings are aborted."""
    wrong = {"Type": "Pass", "Parameters": {"x.$": "$.none"}, "End": True}
    nap = {"Type": "Wait", "Seconds": 9, "End": True}
    each = {"Type": "Map", "ItemProcessor": {"StartAt": "W", "States": {"W": wrong}}, "End": True}
    branches = [
        {"StartAt": "Nap", "States": {"Nap": nap}},
        {"StartAt": "Each", "States": {"Each": each}},
    ]
    definition = machine({"All": {"Type": "Parallel", "Branches": branches, "End": True}})
    events = engine.run(definition, [1]).events
    assert [event.type for event in events][-2:] == ["PassStateEntered", "ExecutionFailed"]
    assert colours(definition, events) == {
        "All": "failed",
        "Nap": "aborted",
        "Each": "failed",
        "W": "failed",
    }
    trace = engine.Trace(drawn(definition))
    trace.feed(events)
    assert trace.culprit is not None
    assert trace.culprit.node == next(
        node.id for node in drawn(definition).nodes if node.name == "W"
    )
