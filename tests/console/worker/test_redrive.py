"""The redrive matrix: what ended badly in every way and place goes on, once and twice.

Calls are counted: a state that succeeded is never run again.
"""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from console.db import clock
from console.errors import ErrorCode
from console.models import Execution, MapRun
from console.store.executions import redrive
from console.store.executions.stop import stop_execution
from console.store.state import history
from console.worker import Embedded
from tests.console.store.helpers import (
    assert_nothing_wrong,
    create,
    crowd,
    drain,
    ended,
    function,
    one,
    start,
    types,
)
from tests.refusals import raises_code
from tests.waiting import wait_until

if TYPE_CHECKING:
    from console.models import Project

CALLS: Counter[str] = Counter()
BROKEN: set[str] = set()
GATE = threading.Event()
"""While it is not set, calls of ``good`` wait."""
NAP_S = 1


def work(event: Any, context: Any) -> Any:
    """Count the call; fail, or take too long, while its name is in ``BROKEN``."""
    name = event["name"] if isinstance(event, dict) else str(event)
    CALLS[name] += 1
    if name == "good":
        GATE.wait(30)
    if name in BROKEN:
        raise RuntimeError(f"{name} is broken")
    return name


@pytest.fixture(autouse=True)
def functions(settings: Any) -> None:
    """Register the function; nothing is broken, nothing was called."""
    settings.STATEYARD_FUNCTIONS = {"work": f"{__name__}:work"}
    CALLS.clear()
    BROKEN.clear()
    GATE.set()


def step(name: str, **more: Any) -> dict[str, Any]:
    """Return a Task that calls the function under a name."""
    return function("work", Parameters={"name": name}, ResultPath=None, **more)


def bad(way: str) -> dict[str, Any]:
    """Return the states after ``good`` that end badly in a way, if ``gate`` says so."""
    if way == "fail":
        return {"bad": {"Type": "Fail", "Error": "E"}}
    if way == "task":
        return {"bad": step("bad", Next="last"), "last": step("last", End=True)}
    longer = 4 if way == "timeout" else 1  # than the machine may last, on a busy machine, too
    nap = {"Type": "Wait", "Seconds": NAP_S + longer, "Next": "last"}
    return {"bad": nap, "last": step("last", End=True)}


def inner(way: str) -> dict[str, Any]:
    """Return a line of states: one that succeeds, then one that ends badly."""
    return {"StartAt": "good", "States": {"good": step("good", Next="bad"), **bad(way)}}


def definition(way: str, place: str) -> dict[str, Any]:
    """Return a machine whose bad state stands at a place."""
    line = inner(way)
    done = {"StartAt": "side", "States": {"side": step("side", End=True)}}
    if place == "top level":
        document = line
    elif place == "Parallel":
        document = one("P", Type="Parallel", Branches=[done, line])
    elif place == "Map":
        document = one("M", Type="Map", ItemsPath="$.items", ItemProcessor=line)
    else:
        mode = {"ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"}}
        document = one("M", Type="Map", ItemsPath="$.items", ItemProcessor={**mode, **line})
    if way == "timeout":
        document["TimeoutSeconds"] = NAP_S
    return document


def end_badly(execution: Execution, way: str) -> Execution:
    """Bring an execution to its bad end."""
    if way == "abort":
        wait_until(lambda: CALLS["good"] != 0)
        time.sleep(0.1)
        stop_execution(Execution.objects.get(pk=execution.pk))
    row = ended(execution)
    wait_until(lambda: not redrive.redrive_refusal(row).endswith("stopped"))
    return row


ENDS = {"fail": "FAILED", "task": "FAILED", "timeout": "TIMED_OUT", "abort": "ABORTED"}


@pytest.mark.slow
@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("place", ["top level", "Parallel", "Map", "distributed Map"])
@pytest.mark.parametrize("way", list(ENDS))
def test_matrix(project: Project, worker: Embedded, way: str, place: str, times: int) -> None:
    """It ends badly, is redriven so often, and what was well is not done again."""
    del worker
    BROKEN.add("bad")
    machine = create(project, definition(way, place))
    if place == "Parallel" and way != "timeout":
        GATE.clear()
    execution = start(machine, {"items": [1]})
    _let_side_succeed(execution, way)
    row = end_badly(execution, way)
    for count in range(1, times + 1):
        assert row.status == ENDS[way], types(row)
        assert redrive.redrive_status(row) == ("REDRIVABLE", "")
        if count == times and way in ("timeout", "abort"):
            _let_it_end(row)
        elif count == times:
            BROKEN.clear()
        redrive.redrive_execution(row)
        if count < times:
            row = end_badly(row, way)
    if way in ("task", "abort"):
        row = ended(row)
        assert row.status == "SUCCEEDED", types(row)
        assert CALLS["last"] == 1
    else:
        row = ended(row)  # a Fail fails again; the clock of a machine's timeout begins anew
        assert row.status == ENDS[way]
    assert row.redrive_count == times
    assert types(row).count("ExecutionRedriven") == times
    assert CALLS["good"] == 1, "a state that had succeeded was run again"
    assert CALLS["side"] == (place == "Parallel")
    if place == "distributed Map":
        assert MapRun.objects.get(parent=row).redrive_count == times


def _let_side_succeed(execution: Execution, way: str) -> None:
    """Let ``good`` go on when the other branch has ended: else a redrive runs that again, too."""
    if GATE.is_set():
        return
    _wait_for_exits(execution, 1)
    GATE.set()
    if way == "abort":
        _wait_for_exits(execution, 2)


def _wait_for_exits(execution: Execution, number: int) -> None:
    wait_until(lambda: types(execution).count("TaskStateExited") >= number)


def _let_it_end(row: Execution) -> None:
    """Nothing to do: the Wait of the last redrive goes by on its own."""
    assert row.stop_ms is not None


def test_a_distributed_map_redrives_only_the_children_that_failed(
    project: Project, worker: Embedded
) -> None:
    """Of five children two fail; the same two run again under their own ARNs."""
    del worker
    BROKEN.update({"2", "4"})
    line = one("C", **function("work"))
    mode = {"ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"}}
    state = {"Type": "Map", "ItemProcessor": {**mode, **line}, "ToleratedFailureCount": 1}
    state["MaxConcurrency"] = 1  # else one that still runs when the second fails is run again
    row = ended(start(create(project, one("M", **state)), [1, 2, 3, 4, 5]))
    assert row.status == "FAILED"
    run = MapRun.objects.get(parent=row)
    before = set(run.children.values_list("arn", flat=True))
    while redrive.redrive_refusal(row):
        time.sleep(0.02)
    BROKEN.clear()
    redrive.redrive_execution(row)
    row = ended(row)
    assert (row.status, json.loads(row.output or "")) == ("SUCCEEDED", ["1", "2", "3", "4", "5"])
    assert before <= set(run.children.values_list("arn", flat=True))
    assert CALLS["2"] == CALLS["4"] == 2
    assert CALLS["1"] == CALLS["3"] == CALLS["5"] == 1
    run.refresh_from_db()
    assert (run.succeeded, run.failed, run.pending_redrive) == (5, 0, 0)
    child = run.children.filter(redrive_count=1).first()
    assert child is not None
    kinds = types(child)
    assert kinds.index("ExecutionRedriven") == kinds.index("ExecutionFailed") + 1


def _failed_map(project: Project, count: int) -> Execution:
    """Return an execution whose distributed Map failed with so many children, four at a time."""
    BROKEN.update(str(item) for item in range(count))
    mode = {"ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"}}
    line = one("C", **function("work"))
    state = {"Type": "Map", "ItemProcessor": {**mode, **line}, "MaxConcurrency": 4}
    limit = {"ToleratedFailureCount": count - 1}  # so all of them run, and the last is too many
    row = ended(start(create(project, one("M", **state, **limit)), [*range(count)]))
    assert row.status == "FAILED"
    assert MapRun.objects.get(parent=row).failed == count
    return row


@pytest.mark.slow
@pytest.mark.parametrize("times", [1, 2])
def test_children_that_fail_again_hold_up_no_redrive(
    project: Project, worker: Embedded, times: int
) -> None:
    """Each is redriven once a redrive, though those before it have failed again meanwhile."""
    del worker
    row = _failed_map(project, 12)
    for count in range(1, times + 1):
        while redrive.redrive_refusal(row):
            time.sleep(0.02)
        redrive.redrive_execution(row)
        row = ended(row)
        run = MapRun.objects.get(parent=row)
        assert (row.status, run.failed, run.pending_redrive) == ("FAILED", 12, 0)
        assert set(run.children.values_list("redrive_count", flat=True)) == {count}
    assert {CALLS[str(item)] for item in range(12)} == {times + 1}
    BROKEN.clear()
    redrive.redrive_execution(row)
    assert ended(row).status == "SUCCEEDED"
    assert_nothing_wrong()


def test_children_that_cannot_be_redriven_are_counted_once(
    project: Project, worker: Embedded
) -> None:
    """They keep their end; those between and behind them are redriven."""
    del worker
    row = _failed_map(project, 12)
    lost = [0, 1, 2, 3, 4, 7, 10, 11]
    long_ago = clock.now_ms() - redrive.PERIOD_MS - 60_000
    Execution.objects.filter(map_run__parent=row, item_index__in=lost).update(stop_ms=long_ago)
    while redrive.redrive_refusal(row):
        time.sleep(0.02)
    BROKEN.clear()
    redrive.redrive_execution(row)
    row = ended(row)
    run = MapRun.objects.get(parent=row)
    assert (row.status, run.succeeded, run.failed) == ("SUCCEEDED", 4, 8), row.cause
    assert run.pending_redrive == 0
    again = run.children.filter(redrive_count=1).order_by("item_index")
    assert list(again.values_list("item_index", flat=True)) == [5, 6, 8, 9]


@pytest.mark.slow
@pytest.mark.parametrize("limit", [1, 0])
def test_an_inline_map_redrives_only_the_iterations_that_did_not_succeed(
    project: Project, worker: Embedded, limit: int
) -> None:
    """Those that succeeded keep their results; what failed, was stopped or not begun is done."""
    del worker
    BROKEN.add("3")
    last = function("work", End=True)
    held = {"Type": "Wait", "Seconds": NAP_S, "Next": "C"}
    which: dict[str, Any] = {"Type": "Choice", "Default": "C"}
    which["Choices"] = [{"Variable": "$", "NumericGreaterThan": 2, "Next": "W"}]
    line = {"StartAt": "Q", "States": {"Q": which, "W": held, "C": last}}
    state = {"Type": "Map", "ItemProcessor": line, "MaxConcurrency": limit}
    row = ended(start(create(project, one("M", **state)), [1, 2, 3, 4, 5]))
    assert row.status == "FAILED"
    before = Counter(CALLS)
    assert before["1"] == before["2"] == before["3"] == 1
    BROKEN.clear()
    redrive.redrive_execution(row)
    row = ended(row)
    assert (row.status, json.loads(row.output or "")) == ("SUCCEEDED", ["1", "2", "3", "4", "5"])
    assert CALLS["1"] == CALLS["2"] == 1
    assert CALLS["3"] == 2
    assert types(row).count("MapIterationSucceeded") == 5


def test_what_may_not_be_redriven_says_why(project: Project, worker: Embedded) -> None:
    """In AWS's words; a child of a Map Run is its parent's."""
    del worker
    waits = start(create(project, one("W", Type="Wait", Seconds=600), "waits"))
    assert redrive.redrive_refusal(waits) == "Execution is RUNNING and cannot be redriven"
    done = ended(start(create(project, one("P", Type="Pass"), "done")))
    with raises_code(ErrorCode.ExecutionNotRedrivable, match="SUCCEEDED and cannot be redriven"):
        redrive.redrive_execution(done)
    stop_execution(waits)
    Execution.objects.filter(pk=waits.pk).update(stop_ms=1_000)
    waits.refresh_from_db()
    assert redrive.redrive_refusal(waits) == "Execution redrivable period exceeded"


def test_of_many_redrives_at_once_one_wins(project: Project) -> None:
    """The others are told that it runs; the history has one ExecutionRedriven."""
    execution = start(create(project, one("W", Type="Wait", Seconds=600)))
    stop_execution(execution)
    outcomes = crowd(6, lambda _: redrive.redrive_execution(Execution.objects.get(pk=execution.pk)))
    won = [outcome for outcome in outcomes if isinstance(outcome, int)]
    assert len(won) == 1
    from console.store.executions import step

    while step.step_execution(execution.pk):
        pass
    assert types(execution).count("ExecutionRedriven") == 1


def test_the_same_client_token_gives_the_same_answer(project: Project) -> None:
    """Asked again within 15 minutes nothing more is done."""
    execution = start(create(project, one("W", Type="Wait", Seconds=600)))
    stop_execution(execution)
    first = redrive.redrive_execution(execution, token="t")
    assert redrive.redrive_execution(execution, token="t") == first
    execution.refresh_from_db()
    assert execution.redrive_count == 1


def test_the_last_ten_client_tokens_give_their_answers(project: Project) -> None:
    """Each its own, also after redrives by others; an eleventh is a new redrive, as is an old one.

    Source: API reference, RedriveExecution.
    """
    execution = start(create(project, one("W", Type="Wait", Seconds=600)))
    moments = {}
    for number in range(11):
        stop_execution(execution)
        moments[number] = redrive.redrive_execution(execution, token=f"t{number}")
    stop_execution(execution)
    assert redrive.redrive_execution(execution) > 0  # by no token
    for number in range(1, 11):
        assert redrive.redrive_execution(execution, token=f"t{number}") == moments[number]
    with raises_code(ErrorCode.ExecutionNotRedrivable, match="RUNNING"):
        redrive.redrive_execution(execution, token="t0")
    stop_execution(execution)
    execution.refresh_from_db()
    since = execution.redrive_ms or 0
    Execution.objects.filter(pk=execution.pk).update(
        redrive_token="", redrive_tokens=f"t9 {since - 14 * 60_000}\nt8 {since - 16 * 60_000}"
    )
    assert redrive.redrive_execution(execution, token="t9") == since - 14 * 60_000
    assert redrive.redrive_execution(execution, token="t8") >= since
    execution.refresh_from_db()
    assert execution.redrive_count == 13


def test_a_client_token_of_the_previous_release_counts(project: Project) -> None:
    """Its process leaves one token, that of the last redrive."""
    execution = start(create(project, one("W", Type="Wait", Seconds=600)))
    stop_execution(execution)
    first = redrive.redrive_execution(execution)
    Execution.objects.filter(pk=execution.pk).update(redrive_token="t")
    assert redrive.redrive_execution(execution, token="t") == first


def test_the_history_before_a_redrive_stays_as_it_was(project: Project, worker: Embedded) -> None:
    """Reads before are a prefix of reads after (I16), and ids go on."""
    del worker
    BROKEN.add("bad")
    row = ended(start(create(project, inner("task"))))
    before = [history.aws_event(event) for event in history.list_events(row.pk, limit=1000)]
    BROKEN.clear()
    redrive.redrive_execution(row)
    ended(row)
    after = [history.aws_event(event) for event in history.list_events(row.pk, limit=1000)]
    assert after[: len(before)] == before
    assert [event["id"] for event in after] == list(range(1, len(after) + 1))


def test_a_map_run_that_had_not_begun(project: Project) -> None:
    """A Map stopped before anybody began its Map Run is redriven like any other."""
    execution = start(create(project, definition("task", "Map Run")), {"items": [1, 2]})
    drain(execution)
    stop_execution(execution)
    assert not MapRun.objects.exists()
    redrive.redrive_execution(execution)
    worker = Embedded()
    worker.start()
    try:
        assert ended(execution).status == "SUCCEEDED"
    finally:
        worker.stop()
    assert_nothing_wrong()
