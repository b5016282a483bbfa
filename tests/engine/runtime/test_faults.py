"""Faults: which strike when, what the machine makes of them, and that nothing else changes."""

from __future__ import annotations

import json
from typing import Any

import pytest

import engine
from engine.runtime.faults import FAULT_TYPES
from tests.engine.runtime.harness import Sim, activity, machine

ARN = "arn:aws:lambda:us-east-1:123456789012:function:pay"
CALL = ("LambdaFunctionScheduled", "LambdaFunctionStarted")
ITEMS = {"items": [1, 2, 3, 4, 5]}


def pays(**more: Any) -> dict[str, Any]:
    """Return a Task."""
    return {"Type": "Task", "Resource": ARN, **more}


def retried(attempts: int = 2, **more: Any) -> dict[str, Any]:
    """Return a machine with a Task that is retried."""
    retry = [{"ErrorEquals": ["States.ALL"], "MaxAttempts": attempts}]
    return machine("Pay", Pay=pays(Retry=retry, **more))


def mapped(**more: Any) -> dict[str, Any]:
    """Return a machine with an inline Map over ``items``, whose first state has a Retrier."""
    retry = [{"ErrorEquals": ["States.ALL"]}]
    processor = machine("Pay", Pay=pays(Retry=retry, HeartbeatSeconds=60))
    each = {"Type": "Map", "ItemsPath": "$.items", "ItemProcessor": processor, **more}
    return machine("Each", Each=each)


def asks(**more: Any) -> dict[str, Any]:
    """Return a Task that waits for a callback."""
    resource = "arn:aws:states:::sqs:sendMessage.waitForTaskToken"
    body = {"QueueUrl": "q", "MessageBody.$": "$$.Task.Token"}
    return {"Type": "Task", "Resource": resource, "Parameters": body, "End": True, **more}


def run(definition: dict[str, Any], *faults: Any, seed: int = 0, data: Any = None) -> engine.Result:
    """Run a machine whose call succeeds."""
    return engine.run(definition, data, {"pay": lambda data: data}, faults=faults, seed=seed)


def types(result: engine.Result) -> list[str]:
    """Return the types of the events of calls."""
    return [event.type for event in result.events if event.type.startswith("LambdaFunction")]


class FaultySim(Sim):
    """An execution with faults; each step goes through the text of its run."""

    def __init__(self, definition: dict[str, Any], *faults: Any, seed: int = 0) -> None:
        self.faults, self.seed = faults, seed
        self.notes: list[engine.NoteEdit] = []
        self.answered: list[engine.AnsweredTask] = []
        super().__init__(definition, ITEMS, reload=True)

    def send(self, message: engine.Message, *, budget: int = engine.BUDGET) -> engine.Step:
        """Inject the faults with the start."""
        if isinstance(message, engine.Start):
            plan = engine.read_faults([*self.faults], self.machine, seed=self.seed)
            self.run = self.run.with_faults(plan)
        return super().send(message, budget=budget)

    def _take(self, command: engine.Command) -> None:
        match command:
            case engine.NoteEdit():
                self.notes.append(command)
            case engine.AnsweredTask():
                self.answered.append(command)
            case _:
                super()._take(command)


# -- what each type does ---------------------------------------------------------------------------


def test_a_failure_before_the_call_makes_no_call() -> None:
    """The events are those of a call that failed, with the error and cause."""
    fault = {"state": "Pay", "error": "Card.Declined", "cause": "no money", "attempts": [1]}
    result = run(retried(), fault)
    assert types(result) == [*CALL, "LambdaFunctionFailed", *CALL, "LambdaFunctionSucceeded"]
    failed = next(event for event in result.events if event.type == "LambdaFunctionFailed")
    assert failed.details == {"error": "Card.Declined", "cause": "no money"}
    assert (result.status, len(result.calls)) == ("SUCCEEDED", 1)
    assert result.struck == (engine.StruckFault("Pay", engine.FaultType.FAIL, 1),)


@pytest.mark.parametrize("outcome", ["success", "failure"])
def test_a_failure_after_the_call_replaces_its_outcome(outcome: str) -> None:
    """The call is made: an effect that a retry doubles can be counted."""
    sim = FaultySim(retried(), {"state": "Pay", "error": "Lost", "when": "after", "attempts": [1]})
    if outcome == "success":
        sim.succeed("Pay", {"paid": True})
    else:
        sim.fail("Pay")
    failed = next(event for event in sim.events if event.type == "LambdaFunctionFailed")
    assert failed.details == {"error": "Lost", "cause": "A fault was injected."}
    (note,) = sim.notes
    assert note.before == ('{"paid": true}' if outcome == "success" else "")
    assert json.loads(note.after) == {
        "type": "fail", "error": "Lost", "when": "after", "attempt": 1
    }  # fmt: skip
    sim.fire()
    sim.succeed("Pay", "second")
    assert sim.output == "second"


def test_latency_holds_the_call_back() -> None:
    """It has its events at once, waits in the clock of the execution, and is made then."""
    sim = FaultySim(
        retried(TimeoutSeconds=20),
        {"state": "Pay", "type": "latency", "seconds": 7, "attempts": [1]},
    )
    assert sim.events[-1].type == "LambdaFunctionStarted"
    assert not sim.tasks
    (frame,) = sim.run.frames.values()
    assert frame.phase == "delay"
    assert sim.timers == {frame.timer: sim.now_ms + 7_000}
    sim.fire()
    (task,) = sim.tasks.values()
    assert (task.timeout_seconds, task.task) == (13, frame.waits_for)
    sim.succeed("Pay", 1)
    assert sim.output == 1


def test_latency_of_an_activity_leaves_its_clock_alone() -> None:
    """Its TimeoutSeconds count from the worker that takes it."""
    sim = FaultySim(
        machine("Pay", Pay=activity(TimeoutSeconds=5)),
        {"state": "Pay", "type": "latency", "seconds": 7},
    )
    assert sim.events[-1].type == "ActivityScheduled"
    sim.fire()
    assert [task.timeout_seconds for task in sim.tasks.values()] == [5]


def test_latency_of_several_faults_adds_up() -> None:
    """A failure comes when the time is over."""
    result = run(
        retried(0),
        {"state": "Pay", "type": "latency", "seconds": 2},
        {"state": "Pay", "type": "latency", "seconds": 3},
        {"state": "Pay", "error": "E"},
    )
    assert (result.error, result.slept, result.calls) == ("E", 5, ())
    assert [struck.type for struck in result.struck] == ["latency", "fail"]


@pytest.mark.parametrize(("seconds", "slept"), [(0, 0), (7, 7)])
def test_a_lost_heartbeat_is_taken_by_its_own_name(seconds: int, slept: int) -> None:
    """A Retrier of States.Timeout does not take it; the event has States.Timeout, as AWS writes."""
    catch = [
        {"ErrorEquals": ["States.HeartbeatTimeout"], "Next": "Silent"},
        {"ErrorEquals": ["States.ALL"], "Next": "Other"},
    ]
    states = {
        "Pay": pays(HeartbeatSeconds=9, Catch=catch, Next="Other"),
        "Silent": {"Type": "Pass", "Result": "silent", "End": True},
        "Other": {"Type": "Pass", "Result": "other", "End": True},
    }
    fault = {"state": "Pay", "type": "lose-heartbeat", "seconds": seconds}
    result = run(machine("Pay", **states), fault)
    assert (result.output, result.slept, result.calls) == ("silent", slept, ())
    assert [strike.state for strike in result.struck] == ["Pay"]


def test_latency_over_the_timeout_times_out() -> None:
    """At TimeoutSeconds; the call is not made."""
    result = run(
        retried(TimeoutSeconds=20),
        {"state": "Pay", "type": "latency", "seconds": 20, "attempts": [1]},
    )
    assert types(result)[:3] == [*CALL, "LambdaFunctionTimedOut"]
    assert (result.slept, len(result.calls)) == (21, 1)


@pytest.mark.parametrize(("seconds", "slept"), [(0, 0), (30, 30)])
def test_a_timeout_needs_no_timeout_seconds(seconds: int, slept: int) -> None:
    """At once, or after the seconds."""
    result = run(retried(0), {"state": "Pay", "type": "timeout", "seconds": seconds})
    assert types(result) == [*CALL, "LambdaFunctionTimedOut"]
    assert (result.error, result.slept, len(result.calls)) == ("States.Timeout", slept, 0)
    assert len(result.struck) == 1


def test_throttling_has_the_error_of_the_service() -> None:
    """Or the error that the fault names."""
    assert run(retried(0), {"state": "Pay", "type": "throttle"}).error == (
        "Lambda.TooManyRequestsException"
    )
    named = {"state": "Pay", "type": "throttle", "error": "Pay.SlowDown"}
    assert run(retried(0), named).error == "Pay.SlowDown"


def test_iterations_fail_as_a_whole() -> None:
    """As many as asked for, chosen by the seed; the Retrier of their first state is not asked."""
    caught = {"Catch": [{"ErrorEquals": ["E"], "Next": "Caught"}], "End": True}
    definition = mapped(**caught, MaxConcurrency=1)
    definition["States"]["Each"].pop("Next", None)
    definition["States"]["Caught"] = {"Type": "Pass", "End": True}
    fault = {"state": "Each", "type": "fail-children", "children": 2, "error": "E"}
    failing = set()
    for seed in range(8):
        result = run(definition, fault, seed=seed, data=ITEMS)
        failed = [event for event in result.events if event.type == "MapIterationFailed"]
        assert len(failed) == 1, "the first one fails an inline Map"
        failing.add(failed[0].details["index"])
        assert result.path[-1] == "Caught"
    assert len(failing) > 1


def test_a_map_that_is_retried_fails_at_its_first_attempt_only() -> None:
    """Its attempts are counted, not those of its iterations."""
    definition = mapped(Retry=[{"ErrorEquals": ["States.ALL"]}])
    fault = {"state": "Each", "type": "fail-children", "children": 5, "attempts": [1]}
    result = run(definition, fault, data=ITEMS)
    assert result.status == "SUCCEEDED"
    assert [struck.attempt for struck in result.struck] == [1]
    more = run(definition, {**fault, "attempts": [1, 2]}, data={"items": []})
    assert (more.status, more.struck) == ("SUCCEEDED", ())


@pytest.mark.parametrize("kind", ["Map", "Parallel"])
def test_a_group_fails_before_it_opens(kind: str) -> None:
    """Its Catcher takes the error; none of its children has begun."""
    branch = machine("In", In={"Type": "Pass", "End": True})
    body = {"Branches": [branch]} if kind == "Parallel" else {"ItemProcessor": branch}
    group = {"Type": kind, **body, "Catch": [{"ErrorEquals": ["E"], "Next": "Out"}], "End": True}
    definition = {
        "StartAt": "Both",
        "States": {"Both": group, "Out": {"Type": "Pass", "End": True}},
    }
    result = run(definition, {"state": "Both", "error": "E"}, data=[1])
    assert result.path == ("Both", "Out")


# -- answers of callbacks --------------------------------------------------------------------------

LATE = {"state": "Ask", "type": "delay-callback", "seconds": 5, "attempts": [1]}
TWICE = {"state": "Ask", "type": "duplicate-callback"}


def timed_out(sim: FaultySim) -> list[tuple[str, int]]:
    """Return the type and second of the events that end a Task."""
    ends = ("TaskTimedOut", "TaskSucceeded", "TaskFailed", "ActivityTimedOut", "ActivitySucceeded")
    start = sim.events[0].at_ms
    return [(each.type, (each.at_ms - start) // 1000) for each in sim.events if each.type in ends]


@pytest.mark.parametrize("outcome", ["success", "failure"])
def test_a_delayed_answer_takes_effect_later(outcome: str) -> None:
    """Nothing has happened until then, in particular no event; then the Catcher is asked."""
    catch = [{"ErrorEquals": ["No"], "Next": "Out"}]
    out = {"Type": "Pass", "Result": "caught", "End": True}
    sim = FaultySim(machine("Ask", Ask=asks(Catch=catch), Out=out), LATE)
    sim.send(engine.TaskSubmitted(sim.task("Ask"), "{}"))
    sim.now_ms += 2_000
    before = [*sim.events]
    if outcome == "success":
        sim.succeed("Ask", {"paid": True})
    else:
        sim.fail("Ask", "No")
    assert sim.events == before
    assert list(sim.timers.values()) == [sim.now_ms + 5_000]
    assert [json.loads(note.after)["type"] for note in sim.notes] == ["delay-callback"]
    sim.fire()
    succeeded = outcome == "success"
    assert timed_out(sim) == [("TaskSucceeded" if succeeded else "TaskFailed", 7)]
    assert sim.output == ({"paid": True} if succeeded else "caught")


@pytest.mark.parametrize(
    ("limits", "error", "second"),
    [
        ({"TimeoutSeconds": 6}, "States.Timeout", 6),
        ({"TimeoutSeconds": 7}, "States.Timeout", 7),
        ({"TimeoutSeconds": 60, "HeartbeatSeconds": 3}, "States.HeartbeatTimeout", 5),
        ({"TimeoutSeconds": 4, "HeartbeatSeconds": 3}, "States.Timeout", 4),
        ({"TimeoutSeconds": 8}, "", 7),
    ],
)
def test_a_delayed_answer_may_come_too_late(limits: Any, error: str, second: int) -> None:
    """The limits of the Task run on; the note has the answer that is lost."""
    catch = [{"ErrorEquals": [error or "No"], "Next": "Out"}]
    out = {"Type": "Pass", "Result": "late", "End": True}
    sim = FaultySim(machine("Ask", Ask=asks(Catch=catch, **limits), Out=out), LATE)
    sim.now_ms += 2_000
    sim.succeed("Ask", 1)
    sim.fire()
    assert timed_out(sim) == [("TaskTimedOut" if error else "TaskSucceeded", second)]
    assert sim.output == ("late" if error else 1)
    assert [note.before for note in sim.notes] == ["1" if error else ""]
    plan = sim.run.faults
    assert plan is None


def test_an_answer_that_waits_for_its_step_is_not_too_late() -> None:
    """The server has accepted it before the limit; then the execution was paused for a while."""
    sim = FaultySim(machine("Ask", Ask=asks(TimeoutSeconds=6)), LATE)
    sim.now_ms += 20_000
    sim.succeed("Ask", 1)
    sim.fire()
    assert timed_out(sim) == [("TaskSucceeded", 25)]
    assert [note.before for note in sim.notes] == [""]


def test_the_clock_of_an_activity_begins_with_its_worker() -> None:
    """Its TimeoutSeconds count from then on; the worker came after 30 seconds."""
    sim = FaultySim(machine("Ask", Ask=activity(TimeoutSeconds=10)), LATE)
    sim.now_ms += 30_000
    sim.send(engine.TaskStarted(sim.task("Ask"), "w"))
    sim.now_ms += 4_000
    sim.succeed("Ask", 1)
    sim.fire()
    assert timed_out(sim) == [("ActivitySucceeded", 39)]


def test_a_second_answer_changes_nothing() -> None:
    """The history and the output are those of one answer, also where the Task is entered again."""
    loop = {
        "Type": "Choice",
        "Choices": [{"Variable": "$", "NumericLessThan": 3, "Next": "Ask"}],
        "Default": "Done",
    }
    definition = machine("Ask", Ask=asks(Next="Loop"), Loop=loop, Done={"Type": "Succeed"})
    definition["States"]["Ask"].pop("End")
    plain, twice = Sim(definition, ITEMS), FaultySim(definition, TWICE)
    for sim in (plain, twice):
        for number in (1, 2, 3):
            sim.succeed("Ask", number)
    assert twice.events == plain.events
    assert [json.loads(note.after)["attempt"] for note in twice.notes] == [1, 2, 3]
    assert twice.output == 3


def test_a_second_failure_takes_no_second_retry() -> None:
    """The Retrier counts one failure."""
    retry = [{"ErrorEquals": ["No"], "MaxAttempts": 1, "IntervalSeconds": 1}]
    sim = FaultySim(machine("Ask", Ask=asks(Retry=retry)), TWICE)
    sim.fail("Ask", "No")
    assert len(sim.timers) == 1
    sim.fire()
    sim.succeed("Ask", 2)
    assert sim.output == 2
    assert len(sim.notes) == 2


def test_faults_of_one_answer_go_together() -> None:
    """It is late by the sum, then an error replaces it; the second one finds nothing."""
    sim = FaultySim(
        machine("Ask", Ask=asks()),
        LATE,
        {**LATE, "seconds": 4},
        TWICE,
        {"state": "Ask", "when": "after", "error": "Lost"},
    )
    sim.succeed("Ask", 1)
    sim.fire()
    assert timed_out(sim) == [("TaskFailed", 9)]
    assert [json.loads(note.after)["type"] for note in sim.notes] == [
        *("delay-callback", "delay-callback", "duplicate-callback", "fail")
    ]
    assert sim.finish is not None
    assert sim.finish.error == "Lost"


def test_a_refused_call_has_no_answer() -> None:
    """Its failure is neither late nor doubled, and the next attempt is not struck by its faults."""
    retry = [{"ErrorEquals": ["States.ALL"], "MaxAttempts": 1}]
    sim = FaultySim(machine("Ask", Ask=asks(Retry=retry)), LATE, {**TWICE, "attempts": [1]})
    task = sim.task("Ask")
    del sim.tasks[task]
    sim.send(engine.TaskFailed(task, "Sqs.Gone", "no queue", refused=True))
    assert sim.types[-1] == "TaskSubmitFailed"
    sim.fire()
    sim.succeed("Ask", 1)
    assert (sim.output, sim.notes) == (1, [])


def test_a_stop_forgets_a_late_answer() -> None:
    """A redrive asks again, and gets its answer at once."""
    sim = FaultySim(machine("Ask", Ask=asks()), LATE)
    sim.succeed("Ask", 1)
    sim.send(engine.Stop())
    assert not sim.timers
    sim.redrive()
    sim.succeed("Ask", 2)
    assert sim.output == 2


def test_a_run_in_memory_delays_its_answers() -> None:
    """In virtual time; a token that is answered twice takes one effect."""
    result = engine.run(
        machine("Ask", Ask=asks()), None, {"Ask": lambda _: 1}, faults=[LATE, TWICE]
    )
    assert (result.status, result.output, result.slept) == ("SUCCEEDED", 1, 5)
    assert [struck.type for struck in result.struck] == ["delay-callback", "duplicate-callback"]


# -- determinism -----------------------------------------------------------------------------------


def test_a_rate_is_drawn_by_the_seed() -> None:
    """Two runs with a seed are equal, and another seed draws otherwise; about half strike."""
    fault = {"state": "Pay", "error": "E", "rate": 0.5}
    definition = mapped()
    same = [run(definition, fault, seed=4, data=ITEMS) for _ in range(2)]
    assert same[0].events == same[1].events
    counts = [len(run(definition, fault, seed=seed, data=ITEMS).struck) for seed in range(20)]
    assert len(set(counts)) > 3
    assert 1 < sum(counts) / len(counts) < 9


def test_a_death_after_any_step_changes_nothing() -> None:
    """What is under way is in the text of the run: delayed calls, replaced outcomes, iterations."""
    faults = (
        {"state": "Ask", "type": "delay-callback", "seconds": 3, "rate": 0.5},
        {"state": "Ask", "type": "duplicate-callback", "rate": 0.5},
        {"state": "Pay", "type": "latency", "seconds": 3, "rate": 0.5},
        {"state": "Pay", "when": "after", "error": "E", "rate": 0.5},
        {"state": "Each", "type": "fail-children", "children": 1, "attempts": [1]},
    )
    definition = mapped(Retry=[{"ErrorEquals": ["States.ALL"]}])
    processor = definition["States"]["Each"]["ItemProcessor"]["States"]
    processor["Pay"] |= {"Next": "Ask"}
    processor["Pay"].pop("End")
    processor["Ask"] = asks(TimeoutSeconds=60)

    def events(*, reload: bool) -> list[engine.Event]:
        sim = FaultySim(definition, *faults, seed=6)
        sim.reload = reload
        while sim.finish is None:
            if sim.tasks:
                sim.succeed(sim.tasks[min(sim.tasks)].state, 1)
            else:
                sim.fire()
        struck = {json.loads(note.after)["type"] for note in sim.notes}
        assert {"delay-callback", "duplicate-callback"} < struck
        return sim.events

    assert events(reload=True) == events(reload=False)


def test_without_faults_nothing_changes() -> None:
    """Neither the snapshot nor the history; nor does a fault that never strikes change events."""
    never = {"state": "Pay", "error": "E", "attempts": [1000]}
    plain, faulty = Sim(retried(), ITEMS), FaultySim(retried(), never)
    text = plain.run.dumps()
    assert json.loads(text)["format"] == 1
    assert "faults" not in text
    assert faulty.events == plain.events
    without = faulty.run.with_faults(None)
    assert without.dumps() == text
    assert run(retried(), data=ITEMS).events == run(retried(), never, data=ITEMS).events


def test_a_bad_end_forgets_the_faults() -> None:
    """A redrive goes on without them, also from a call that was held back."""
    sim = FaultySim(retried(), {"state": "Pay", "type": "latency", "seconds": 9})
    sim.send(engine.Stop())
    assert not sim.timers
    assert json.loads(sim.run.dumps())["format"] == 1
    assert "delay" not in sim.run.dumps()
    sim.redrive()
    sim.succeed("Pay", 1)
    assert sim.output == 1


def test_an_aborted_iteration_forgets_its_delayed_call() -> None:
    """Nothing of it stays in the plan, and its timer is gone."""
    sim = FaultySim(
        mapped(Retry=[{"ErrorEquals": ["States.ALL"]}]),
        {"state": "Pay", "type": "latency", "seconds": 9, "attempts": [1, 2, 3, 4]},
        {"state": "Pay", "when": "after", "attempts": [5]},
    )
    task = sim.task("Pay")
    del sim.tasks[task]
    sim.send(engine.TaskTimedOut(task))
    plan = sim.run.faults
    assert plan is not None
    assert (len(plan.delayed), plan.answers) == (4, ())


def test_faults_and_breakpoints_go_together() -> None:
    """A line stops before the fault strikes; an answer of a person wins over it."""
    fault = {"state": "Pay", "error": "E"}
    for act, status in (
        (lambda line: line.go_on(), "FAILED"),
        (lambda line: line.answer(1), "SUCCEEDED"),
    ):
        result = engine.run(
            retried(0), None, {"pay": lambda data: data}, breakpoints=["Pay"], debug=act,
            faults=[fault],
        )  # fmt: skip
        assert result.status == status
        assert result.calls == ()


# -- refusals --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "problem"),
    [
        ("Pay", "faults[0]: got 'Pay', wanted an object"),
        ({"state": "Nope"}, "faults[0].state: got the state 'Nope', wanted one of"),
        ({"type": "fail"}, "faults[0].state: got None, wanted a text"),
        ({"state": "Pay", "type": "explode"}, "faults[0].type: got 'explode', wanted fail"),
        ({"state": "Pay", "often": 1}, "faults[0]: got 'often', wanted state, type"),
        ({"state": "Pay", "seconds": 3}, "faults[0]: got 'seconds', wanted state"),
        ({"state": "Pay", "type": "latency"}, "faults[0].seconds: got 0, wanted an integer, 1 to"),
        ({"state": "Pay", "type": "latency", "seconds": 1.5}, "got 1.5, wanted an integer"),
        ({"state": "Pay", "attempts": [0]}, "faults[0].attempts[0]: got 0, wanted an integer"),
        ({"state": "Pay", "attempts": 1}, "faults[0].attempts: got 1, wanted an array of integers"),
        ({"state": "Pay", "attempts": []}, "faults[0].attempts: got none, wanted at least one"),
        ({"state": "Pay", "rate": 0}, "faults[0].rate: got 0, wanted a number above 0, at most 1"),
        ({"state": "Pay", "rate": "x"}, "faults[0].rate: got 'x', wanted a number above 0"),
        ({"state": "Pay", "when": "later"}, "faults[0].when: got 'later', wanted before or after"),
        ({"state": "Pay", "error": "e" * 257}, "faults[0].error: got 257 characters"),
        ({"state": "Pay", "error": None}, "faults[0].error: got None, wanted a text"),
        ({"state": "Pay", "type": "fail-children", "children": 1}, "got Pay, a Task, wanted a Map"),
        ({"state": "Each", "type": "latency", "seconds": 1}, "got Each, a Map, wanted a Task"),
        ({"state": "Each", "when": "after"}, "faults[0].when: got after, wanted before: a Map"),
        ({"state": "Many", "type": "fail-children", "children": 1}, "Many, a distributed Map"),
        ({"state": "In"}, "wanted one of the state machine's own"),
        ({"state": "Pay", "type": "lose-heartbeat"}, "Pay, wanted a Task with HeartbeatSeconds"),
        ({"state": "Work", "type": "throttle"}, "faults[0].error: got none, wanted a name"),
        ({"state": "Pay", "type": "delay-callback", "seconds": 1}, "got Pay, wanted a Task with"),
        ({"state": "Pay", "type": "duplicate-callback"}, ".waitForTaskToken or an activity for"),
        ({"state": "Work", "type": "delay-callback"}, "faults[0].seconds: got 0, wanted an int"),
        ({"state": "Work", "type": "duplicate-callback", "seconds": 1}, "got 'seconds', wanted"),
    ],
)  # fmt: skip
def test_what_cannot_strike_is_refused(fault: Any, problem: str) -> None:
    """The text says where, what was there, and what would do."""
    plain = machine("One", One={"Type": "Pass", "End": True})
    inner = machine("In", In={"Type": "Pass", "End": True})
    distributed = {**inner, "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"}}
    definition = machine(
        "Pay",
        Pay=pays(Next="Each"),
        Each={"Type": "Map", "ItemProcessor": plain, "Next": "Many"},
        Many={"Type": "Map", "ItemProcessor": distributed, "Next": "Work"},
        Work=activity(),
    )
    with pytest.raises(engine.FaultError) as caught:
        engine.run(definition, faults=[fault])
    assert problem in str(caught.value)


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ({"faults": [], "sede": 1}, "f.yaml: got 'sede', wanted faults and seed"),
        ({"seed": "x", "faults": []}, "f.yaml: seed: got 'x', wanted an integer"),
        ({"seed": 1}, "f.yaml: faults: got None, wanted an array"),
        ([{"state": "Pay"}] * 51, "f.yaml: faults: got 51, wanted at most 50"),
        (None, "f.yaml: faults: got None, wanted an array"),
    ],
)
def test_a_document_that_is_no_plan_is_refused(document: Any, problem: str) -> None:
    """With the name of its file."""
    parsed = engine.parse(json.dumps(retried()))
    with pytest.raises(engine.FaultError) as caught:
        engine.read_faults(document, parsed, place="f.yaml")
    assert str(caught.value) == problem


def test_a_plan_is_read_as_it_is_written() -> None:
    """The text has the fields of its faults that are no defaults."""
    definition = mapped(Next="Ask")
    definition["States"]["Each"].pop("End", None)
    definition["States"]["Ask"] = asks()
    parsed = engine.parse(json.dumps(definition))
    entries = [
        {
            "state": "Pay",
            "type": "fail",
            "error": "E",
            "when": "after",
            "attempts": [2],
            "rate": 0.1,
        },
        {"state": "Pay", "type": "latency", "seconds": 3},
        {"state": "Each", "type": "fail-children", "children": 2},
        {"state": "Pay", "type": "throttle"},
        {"state": "Pay", "type": "timeout"},
        {"state": "Pay", "type": "lose-heartbeat"},
        {"state": "Ask", "type": "delay-callback", "seconds": 4},
        {"state": "Ask", "type": "duplicate-callback", "attempts": [1]},
    ]
    plan = engine.read_faults({"seed": 9, "faults": entries}, parsed)
    assert json.loads(engine.faults_text(plan)) == {"seed": 9, "faults": entries}
    assert engine.read_faults(json.loads(engine.faults_text(plan)), parsed) == plan
    assert engine.describe_faults(plan.faults) == [
        "Pay fails with E after its call at attempt 2, at a rate of 0.1",
        "Pay is called 3 s later",
        "Each has 2 failing iterations",
        "Pay is throttled",
        "Pay times out",
        "Pay loses its heartbeat",
        "Ask gets its answer 4 s late",
        "Ask gets its answer twice at attempt 1",
    ]
    assert {fault.type for fault in plan.faults} == set(FAULT_TYPES)
