"""Six clocks by four courses, in real time: each runs out when it should, and only then."""

from __future__ import annotations

import json
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from botocore.exceptions import ClientError

from tests.acceptance.server import history, wait_for_end
from tests.waiting import PATIENCE_S, wait_until

if TYPE_CHECKING:
    from tests.acceptance.server import Server

pytestmark = pytest.mark.acceptance

ROLE = "arn:aws:iam::123456789012:role/tests"
LIMIT, MARGIN, BEAT = 4, 1.5, 0.4
LATE_S = 1.0
CLOCKS = (
    "execution",
    "callback",
    "scheduleToStart",
    "startToClose",
    "scheduleToClose",
    "heartbeat",
)
COURSES = ("expires", "just in time", "heartbeats", "NONE")
TAGGED = CLOCKS[2:]


class Case(NamedTuple):
    """One cell of the matrix, and what it needs."""

    sfn: Any
    clock: str
    course: str
    machine: str
    activity: str
    child: str

    @property
    def limited(self) -> bool:
        """Return whether the clock is on."""
        return self.course != "NONE"

    @property
    def should_expire(self) -> bool:
        """Heartbeats keep only the heartbeat's own clock from running out.

        A task that somebody has, as one that beats, is past the clock that waits for a worker.
        """
        alive = self.clock in ("heartbeat", "scheduleToStart")
        return self.course == "expires" or (self.course == "heartbeats" and not alive)


@pytest.fixture(scope="module")
def results(up: Server) -> dict[tuple[str, str], dict[str, Any]]:
    """Run all cells at once on one server; return what came of each."""
    sfn = up.client()
    child = machine(sfn, {"StartAt": "P", "States": {"P": {"Type": "Pass", "End": True}}})
    with ThreadPoolExecutor(len(CLOCKS) * len(COURSES)) as pool:
        waiting = {}
        for clock in CLOCKS:
            client = up.client()  # one for four threads: its connections are enough for them
            for course in COURSES:
                waiting[clock, course] = pool.submit(run, prepared(client, clock, course, child))
        return {cell: future.result() for cell, future in waiting.items()}


def machine(sfn: Any, definition: dict[str, Any]) -> str:
    """Create a state machine; return its ARN."""
    machine = sfn.create_state_machine(
        name=f"t-{uuid.uuid4().hex[:12]}", definition=json.dumps(definition), roleArn=ROLE
    )
    return str(machine["stateMachineArn"])


def prepared(sfn: Any, clock: str, course: str, child: str) -> Case:
    """Create what a cell needs: an activity with its tag, and a machine with its seconds."""
    said = "NONE" if course == "NONE" else str(LIMIT)
    tags = [{"key": f"stateyard:{clock}Timeout", "value": said}] if clock in TAGGED else []
    name = f"t-{uuid.uuid4().hex[:12]}"
    activity = sfn.create_activity(name=name, tags=tags)["activityArn"]
    state: dict[str, Any] = {"Type": "Task", "Resource": activity, "End": True}
    if clock == "callback":
        state["Resource"] = "arn:aws:states:::states:startExecution.waitForTaskToken"
        state["Parameters"] = {
            "StateMachineArn": child,
            "Name.$": "$$.Execution.Name",
            "Input": {"token.$": "$$.Task.Token"},
        }
    definition: dict[str, Any] = {"StartAt": "A", "States": {"A": state}}
    if course != "NONE":
        holder = {"execution": definition, "callback": state}.get(clock, {})
        holder["TimeoutSeconds"] = LIMIT
    return Case(sfn, clock, course, machine(sfn, definition), activity, child)


def run(case: Case) -> dict[str, Any]:
    """Run one cell; return the execution, its history, and what its worker was refused."""
    execution = case.sfn.start_execution(stateMachineArn=case.machine)["executionArn"]
    begun = time.monotonic()
    refused: list[str] = []
    if case.course != "expires":
        answer(case, execution, begun, refused)
    elif case.clock != "scheduleToStart":
        token(case, execution)
    end = wait_for_end(case.sfn, execution)
    return {"end": end, "events": history(case.sfn, execution), "refused": refused, "case": case}


def token(case: Case, execution: str) -> str:
    """Return the token of the one task, by a worker's poll or as the child was given it."""
    if case.clock != "callback":
        task = case.sfn.get_activity_task(activityArn=case.activity, workerName="w")
        return str(task["taskToken"])
    child = case.child.replace(":stateMachine:", ":execution:") + ":" + execution.rpartition(":")[2]
    while True:
        try:
            data = case.sfn.describe_execution(executionArn=child)["input"]
            return str(json.loads(data)["token"])
        except ClientError:
            time.sleep(0.05)


def answer(case: Case, execution: str, begun: float, refused: list[str]) -> None:
    """Be the worker of a cell."""
    just = begun + LIMIT - MARGIN
    if (case.clock, case.course) == ("scheduleToStart", "just in time"):
        time.sleep(just - time.monotonic())
        just += 2 * MARGIN
    mine = token(case, execution)
    until = just if case.course == "just in time" else begun + LIMIT + 1
    try:
        while (remaining := until - time.monotonic()) > 0:
            time.sleep(min(remaining, BEAT if case.course == "heartbeats" else remaining))
            if case.course == "heartbeats":
                case.sfn.send_task_heartbeat(taskToken=mine)
        case.sfn.send_task_success(taskToken=mine, output='"done"')
    except ClientError as error:
        refused.append(error.response["Error"]["Code"])


CELLS = [pytest.param(clock, course) for clock in CLOCKS for course in COURSES]
BEGINS = {
    "execution": "ExecutionStarted",
    "callback": "TaskScheduled",
    "startToClose": "ActivityStarted",
    "heartbeat": "ActivityStarted",
}
ENDS = {"execution": "ExecutionTimedOut", "callback": "TaskTimedOut"}


@pytest.mark.parametrize(("clock", "course"), CELLS)
def test_a_clock_ends_what_it_should_and_nothing_else(
    results: dict[tuple[str, str], dict[str, Any]], clock: str, course: str
) -> None:
    """AWS's event with States.Timeout when it runs out, else the worker's output."""
    result = results[clock, course]
    kinds = [event["type"] for event in result["events"]]
    timed_out = [kind for kind in kinds if kind.endswith("TimedOut")]
    if not result["case"].should_expire:
        assert (result["end"]["status"], timed_out) == ("SUCCEEDED", [])
        assert (result["end"]["output"], result["refused"]) == ('"done"', [])
        return
    assert timed_out == [ENDS.get(clock, "ActivityTimedOut")]
    assert result["end"]["status"] == ("TIMED_OUT" if clock == "execution" else "FAILED")
    assert result["end"].get("error", "States.Timeout") == "States.Timeout"
    if course == "heartbeats":
        assert result["refused"] == ["TaskTimedOut"]


def test_no_clock_is_early_or_a_second_late(
    results: dict[tuple[str, str], dict[str, Any]],
) -> None:
    """Counted between the events of the history, by the server's own clock."""
    late = {cell: lateness(result) for cell, result in results.items()}
    measured = {cell: seconds for cell, seconds in late.items() if seconds is not None}
    assert len(measured) == 10
    assert all(0 <= seconds <= LATE_S for seconds in measured.values()), measured


def lateness(result: dict[str, Any]) -> float | None:
    """Return how long after its time a clock ran out, None if it did not."""
    case = result["case"]
    if not case.should_expire:
        return None
    at = {event["type"]: event["timestamp"] for event in reversed(result["events"])}
    begun = at[BEGINS.get(case.clock, "ActivityScheduled")]
    ended = at[ENDS.get(case.clock, "ActivityTimedOut")]
    return float(round((ended - begun).total_seconds() - LIMIT, 3))


def test_a_worker_that_comes_late_gets_nothing(up: Server) -> None:
    """A task that timed out before anybody took it is never handed out; its next attempt is."""
    sfn = up.client()
    tags = [{"key": "stateyard:scheduleToStartTimeout", "value": "1"}]
    name = f"t-{uuid.uuid4().hex[:12]}"
    activity = sfn.create_activity(name=name, tags=tags)["activityArn"]
    retry = [{"ErrorEquals": ["States.Timeout"], "IntervalSeconds": 1, "MaxAttempts": 1}]
    state = {"Type": "Task", "Resource": activity, "Retry": retry, "End": True}
    arn = machine(sfn, {"StartAt": "A", "States": {"A": state}})
    execution = sfn.start_execution(stateMachineArn=arn)["executionArn"]
    wait_until(lambda: "ActivityTimedOut" in [event["type"] for event in history(sfn, execution)])
    took: list[str] = []
    poll = threading.Thread(
        target=lambda: took.append(sfn.get_activity_task(activityArn=activity)["taskToken"])
    )
    poll.start()
    poll.join(PATIENCE_S)
    sfn.send_task_success(taskToken=took[0], output="1")
    assert wait_for_end(sfn, execution)["status"] == "SUCCEEDED"
    kinds = [event["type"] for event in history(sfn, execution)]
    assert kinds.count("ActivityTimedOut") == 1
    assert kinds.count("ActivityStarted") == 1
