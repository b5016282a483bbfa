"""GetExecutionHistory copies the stored texts into its answer, and nobody can tell."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import example, given
from hypothesis import strategies as st

import engine
from console.awsapi import services
from console.awsapi.operations.call import Call
from console.db.audit import Actor
from console.models import Execution, HistoryEvent
from console.store.executions import step_rows
from console.store.state import history, history_pages
from tests.console.awsapi.world import FAIL

if TYPE_CHECKING:
    from tests.console.awsapi.world import World

HOSTILE = {
    "name": '"input":{"output":1}',
    "input": '{"a":"\\"output\\":","b":"ünï\\u0000 🎉"}',
    "output": "",
    "assignedVariables": {"input": '"1"', "output": "2", "inputDetails": "3"},
    "taskCredentials": {"roleArn": "arn", "input": "4"},
    "timeoutInSeconds": 9007199254740993,
}
"""Details whose names and values look like one another."""


NAMES = st.sampled_from([*HOSTILE, "output", "error", 'x"input', ',"input', "{", ""])
TEXTS = ["", '"input":', ',"output":"', '{"input":{}}', "a{", "b}", "\x1f\n", "\\", "é🎉"]
INNER = [{}, {"input": "1"}, {"a": {"output": {}}}, [], [{"input": 2}], ['{"']]
VALUES = st.sampled_from([*TEXTS, *INNER, 1, 9007199254740993, 1 << 70, True, None])


@pytest.fixture
def arn(world: World) -> str:
    """Return an execution that has an event of each type, with details and without."""
    arn: str = world.start(world.fresh(FAIL))
    execution = Execution.objects.get(arn=arn)
    events = HistoryEvent.objects.filter(execution=execution)
    last = events.order_by("event_id").last()
    assert last is not None
    number = last.event_id
    texts = ["", "{}", json.dumps(HOSTILE), json.dumps(HOSTILE, ensure_ascii=False)]
    texts += [json.dumps({name: value}) for name, value in HOSTILE.items()]
    for kind in engine.DETAILS:
        for text in texts:
            number += 1
            HistoryEvent.objects.create(
                execution=execution,
                event_id=number,
                previous=number - 1,
                at_ms=1_700_000_000_000 + number * 37,
                type=kind,
                details=text,
            )
    return arn


def answer(world: World, *, as_json: bool, **params: Any) -> Any:
    """Return an answer as a client reads it."""
    actor = Actor(world.principal.user.get_username(), world.principal.key_id, "request")
    call = Call("GetExecutionHistory", params, world.principal, "us-east-1", actor)
    result = services.STATES.handler(call.action)(replace(call, as_json=as_json))
    return json.loads(msgspec.json.encode(result) if as_json else json.dumps(result))


def pages(world: World, **params: Any) -> list[list[Any]]:
    """Return the events of each page, read as JSON; CBOR's way shows the same."""
    result: list[list[Any]] = []
    token: dict[str, Any] = {}
    while True:
        page = answer(world, as_json=True, **params, **token)
        plain = answer(world, as_json=False, **params, **token)
        assert page["events"] == plain["events"]
        assert ("nextToken" in page) == ("nextToken" in plain)
        result.append(page["events"])
        if "nextToken" not in page:
            return result
        token = {"nextToken": page["nextToken"]}


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("size", [7, 100, 1000])
@pytest.mark.postgres_too
def test_both_ways_give_the_same_events(world: World, arn: str, size: int, reverse: bool) -> None:
    """Every type, every kind of details, each page, in both directions."""
    event_pages = pages(world, executionArn=arn, maxResults=size, reverseOrder=reverse)
    numbers = [event["id"] for page in event_pages for event in page]
    assert numbers == sorted(numbers, reverse=reverse)
    assert len(numbers) == HistoryEvent.objects.filter(execution__arn=arn).count()
    assert all(len(page) == size for page in event_pages[:-1])


EVENTS = st.tuples(
    st.sampled_from([*engine.DETAILS]),
    st.integers(0, 1 << 42),
    st.none() | st.dictionaries(NAMES, VALUES, max_size=4),
)


@given(st.lists(EVENTS, min_size=1, max_size=4))
@example([("PassStateExited", 0, {"output": "{", "assignedVariables": {}})])
@example([("PassStateExited", 1000, {"input": "", "output": ""})])
@example([("PassStateExited", 0, {"input": "1"}), ("PassStateEntered", 7, {"a": {"input": "1"}})])
def test_joined_texts_are_the_bytes_of_the_values(
    events: list[tuple[str, int, dict[str, Any] | None]],
) -> None:
    """Whatever the events of a page hold: their texts are what ``aws_event`` has, byte for byte."""
    texts = [
        "" if details is None else step_rows._details_text(details) for _, _, details in events
    ]
    page = history_pages.EventTexts(
        [str(8 + place) for place in range(len(events))],
        ["7"] * len(events),
        [str(at_ms) for _, at_ms, _ in events],
        [kind for kind, _, _ in events],
        texts,
    )
    event_texts = history_pages.event_texts(page)
    assert len(event_texts) == len(events)
    for place, (kind, at_ms, _) in enumerate(events):
        row = HistoryEvent(
            event_id=8 + place, previous=7, at_ms=at_ms, type=kind, details=texts[place]
        )
        try:
            expected = msgspec.json.encode(history.aws_event(row)).decode()
        except OverflowError:  # a number beyond 64 bits, which only the texts keep
            assert json.loads(event_texts[place]) == history.aws_event(row)
        else:
            assert event_texts[place] == expected


@pytest.mark.parametrize("missing", [1, 2, 9, 50])
@pytest.mark.postgres_too
def test_what_lacks_an_event_is_read_all_the_same(world: World, arn: str, missing: int) -> None:
    """No event is ever removed; but a page must not end at one that is, nor shift the ids."""
    HistoryEvent.objects.filter(execution__arn=arn, event_id=missing).delete()
    event_pages = pages(world, executionArn=arn, maxResults=7)
    rows = HistoryEvent.objects.filter(execution__arn=arn).order_by("event_id")
    assert [event["id"] for page in event_pages for event in page] == [row.event_id for row in rows]


@pytest.mark.parametrize("reverse", [False, True])
def test_a_page_is_the_bytes_of_its_events(world: World, reverse: bool) -> None:
    """Of an execution that really ran."""
    arn = world.start(world.machine)
    call = Call(
        "GetExecutionHistory",
        {"executionArn": arn, "maxResults": 4, "reverseOrder": reverse},
        world.principal,
        "us-east-1",
        Actor(world.principal.user.get_username(), world.principal.key_id, "request"),
    )
    answers = services.STATES.handler(call.action)
    joined = msgspec.json.encode(answers(replace(call, as_json=True))["events"])
    plain = msgspec.json.encode(answers(call)["events"])
    assert joined == plain
    assert b'"truncated":false' in joined


def test_each_payload_says_that_it_is_whole(world: World, arn: str) -> None:
    """The notes stand beside payloads, not beside what only looks like one."""
    entered = [
        event["stateEnteredEventDetails"]
        for page in pages(world, executionArn=arn, maxResults=1000)
        for event in page
        if event["type"] == "PassStateEntered"
    ]
    assert entered[:2] == [{}, {}]
    notes = {"inputDetails", "outputDetails", "assignedVariablesDetails"}
    assert entered[2] == entered[3]
    assert entered[2] == HOSTILE | {note: {"truncated": False} for note in notes}
    assert {"taskCredentials": HOSTILE["taskCredentials"]} in entered


def test_without_data_no_payload_is_read_into_the_answer(world: World, arn: str) -> None:
    """``includeExecutionData=false`` has nothing of them in either protocol."""
    (events,) = pages(world, executionArn=arn, maxResults=1000, includeExecutionData=False)
    allowed = {"name", "taskCredentials", "timeoutInSeconds"}
    for event in events:
        members = set(event.get(engine.DETAILS[event["type"]], {}))
        assert members - allowed <= {"error", "cause", "roleArn"}


@pytest.mark.postgres_too
def test_a_page_takes_one_query_for_its_events(world: World, arn: str) -> None:
    """However many there are."""
    with CaptureQueriesContext(connection) as queries:
        answer(world, as_json=True, executionArn=arn, maxResults=1000)
    statements = [query["sql"] for query in queries if "historyevent" in query["sql"]]
    assert len(statements) == 1
