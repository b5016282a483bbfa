"""Every snapshot that an earlier version wrote loads and runs on.

``formats`` holds what earlier versions wrote, made by their own code: format 1 has grown three
times before a first release. (What the engine wrote before there was a store, nobody has kept.)
``formats/texts`` holds the very texts that a version wrote: retries, branches, iterations, waits,
redrives and bad ends, with odd characters and numbers in their data. Format 2 has ``held``, format
3 ``plan``, format 4 ``faults``.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import engine
from engine.runtime.breakpoints import LineDestination
from engine.runtime.faults import DelayedCall, FailingChildren, FaultPlan, FaultyAnswer, LateAnswer
from engine.runtime.run import FORMAT, Frame, Group
from tests.engine.runtime.harness import Sim, activity, machine

ROOT = Path(__file__).parents[3]
FORMATS = sorted((Path(__file__).parent / "formats").glob("*.json"))
HELD = [path for path in FORMATS if "held" in json.loads(path.read_text())["snapshot"]]
PLANNED = [path for path in FORMATS if "plan" in json.loads(path.read_text())["snapshot"]]
HALTED, STEPPING = PLANNED[:1], PLANNED[1:]
INJECTED = [path for path in FORMATS if "faults" in json.loads(path.read_text())["snapshot"]]
RUNNING = [
    path
    for path in FORMATS
    if json.loads(path.read_text())["tasks"] and path not in [*PLANNED, *INJECTED]
]
TEXTS = sorted((Path(__file__).parent / "formats" / "texts").glob("*.json"))
FAULTY, LATE = INJECTED[:1], INJECTED[1:]
ENDED = [path for path in FORMATS if path not in [*RUNNING, *HELD, *PLANNED, *INJECTED]]
# What a snapshot of each format may contain. Whoever adds a field makes a new format, with a file
# written by the version before: else that version would misread what this one writes.
FIELDS = {
    1: {
        "frame": "id path state input cursor group index phase waits_for timer entered_event "
        "entered_ms started_event submitted tries retry_count variables map_run",
        "group": "id owner kind total start_event last_event started done limit size",
        "run": "about frames groups ready next_event next_id last_ms status",
    }
}
FIELDS[2] = FIELDS[1] | {
    "run": f"{FIELDS[1]['run']} held",
    "task": "task kind resource state input attempt entered_event service action pattern "
    "timeout_seconds heartbeat_seconds credentials",
}
FIELDS[3] = FIELDS[2] | {
    "run": f"{FIELDS[2]['run']} plan",
    "plan": "breakpoints reached halts stepping next_halt entering destinations",
    "destination": "frame state depth",
    "breakpoint": "state when condition hits",
    "halt": "number frame state when since_ms stepped entered_after problem output assigned "
    "following error cause fatal of_result",
}
FIELDS[4] = FIELDS[3] | {
    "run": f"{FIELDS[3]['run']} faults",
    "faults": "faults seed by attempts delayed answers children late",
    "fault": "state type error cause when seconds children attempts rate",
    "delayed": "task fault attempt ending times_out",
    "answer": "frame fault attempt since_ms timeout_seconds heartbeat_seconds",
    "late": "task output error cause timed_out",
    "children": "group fault attempt indices",
}


def revived(path: Path) -> Sim:
    """Return an execution as an earlier version left it."""
    stored = json.loads(path.read_text())
    sim = Sim(stored["definition"], None, reload=True)
    sim.values.clear()
    sim.values.update(stored["values"])
    sim.run = engine.Run.loads(json.dumps(stored["snapshot"]), sim.values)
    sim.now_ms = stored["now_ms"]
    sim.events.clear()
    arn = "arn:aws:lambda:us-east-1:123456789012:function:work"
    sim.tasks = {
        int(number): engine.RunTask(int(number), engine.TaskKind.LAMBDA, arn, state, "{}")
        for number, state in stored["tasks"].items()
    }
    sim.timers = stored["timers"]
    sim.finish = None
    return sim


@pytest.mark.parametrize("path", RUNNING, ids=lambda path: path.stem)
def test_what_ran_runs_on(path: Path) -> None:
    """Retries, branches, iterations, waits and variables go on from where they were."""
    sim = revived(path)
    while sim.finish is None:
        if sim.tasks:
            state = sim.tasks[min(sim.tasks)].state
            sim.succeed(state, state)
        else:
            sim.fire()
    items = [{"was": "first"}, {"was": "Item"}, {"was": "Item"}]
    assert sim.output == {
        "kept": "yes",
        "all": [{"again": "Again"}, items, "woke"],
        "text": "long " * 300,
    }
    assert [event.id for event in sim.events][-1] == 44
    assert not sim.values


@pytest.mark.parametrize("path", ENDED, ids=lambda path: path.stem)
def test_what_failed_is_redriven(path: Path) -> None:
    """What was kept for a redrive is enough for it."""
    sim = revived(path)
    sim.redrive()
    sim.map_runs.clear()
    if not sim.tasks:  # the task that an earlier version scheduled is opened again by its number
        number = next(iter(sim.run.frames.values())).waits_for
        sim.send(engine.TaskSucceeded(number, '["kept", "again"]'))
    else:
        sim.succeed("Item", "again")
    assert sim.output == ["kept", "again"]


@pytest.mark.parametrize("path", HELD, ids=lambda path: path.stem)
def test_what_was_held_is_called(path: Path) -> None:
    """The tasks start as they were scheduled, with their inputs, tokens and timeouts."""
    sim = revived(path)
    sim.send(engine.Continue())
    started = [
        event for event in sim.events if event.type in ("LambdaFunctionStarted", "TaskStarted")
    ]
    assert [event.previous for event in started] == [*sim.tasks]
    by_state = {task.state: task for task in sim.tasks.values()}
    assert by_state["Plain"].input == '{"n":7}'
    call = by_state["Call"]
    token = engine.task_token(b"key", sim.run.about["execution_arn"], call.task)
    assert json.loads(call.input)["Payload"] == {"token": token, "n": 7}
    assert (call.timeout_seconds, call.heartbeat_seconds) == (300, 60)
    assert (call.service, call.action, call.pattern) == ("lambda", "invoke", ".waitForTaskToken")
    sim.succeed("Call", {"n": "yes"})
    sim.succeed("Plain", "too")
    assert sim.output == ["yes", "too", {"n": 7}]


@pytest.mark.parametrize("path", HALTED, ids=lambda path: path.stem)
def test_what_stood_at_a_breakpoint_goes_on(path: Path) -> None:
    """A line before its work, one after it, and one with an error, each with its condition."""
    sim = revived(path)
    plan = sim.run.plan
    assert plan is not None
    assert [halt.when for halt in plan.halts] == ["before", "after", "error"]
    for halt in plan.halts:
        sim.send(engine.Release(halt.number))
    sim.succeed("Call", "called")
    assert sim.output == ["called", {"n": 7}, {"Error": "Broken", "Cause": "it broke"}]


@pytest.mark.parametrize("path", STEPPING, ids=lambda path: path.stem)
def test_what_stepped_stops_where_it_should(path: Path) -> None:
    """One line steps into a Map, one runs to a state, and a third steps over a task."""
    sim = revived(path)
    for _ in range(3):
        sim.succeed(sim.tasks[min(sim.tasks)].state, "called")
    lines = engine.halted_lines(sim.machine, sim.run, engine.Moment(sim.now_ms))
    assert sorted((line.state, line.place) for line in lines) == [
        ("Each", "All[0]/Map[1]"),
        ("Stepped", "All[2]"),
        ("There", "All[1]"),
    ]
    for line in lines:
        sim.send(line.go_on())
    sim.succeed("Each", "called")
    assert sim.output == [["called", "called"], "called", "called"]


@pytest.mark.parametrize("path", LATE, ids=lambda path: path.stem)
def test_a_late_answer_goes_on(path: Path) -> None:
    """One answer is held back, and another one, which has not come, will be."""
    sim = revived(path)
    sim.succeed("Ask", "second")
    sim.fire()
    sim.fire()
    assert sim.output == ["second", "first"]


@pytest.mark.parametrize("path", FAULTY, ids=lambda path: path.stem)
def test_what_faults_hold_back_goes_on(path: Path) -> None:
    """A delayed call is made, an outcome is replaced, and an iteration that was chosen fails."""
    sim = revived(path)
    plan = sim.run.faults
    assert plan is not None
    lost, item = (
        next(frame.waits_for for frame in sim.run.frames.values() if frame.state == state)
        for state in ("Lost", "Item")
    )
    sim.send(engine.TaskSucceeded(lost, "1"))
    sim.send(engine.TaskSucceeded(item, "1"))
    sim.fire()
    sim.succeed("Late", "called")
    broken = {"Error": "Broken", "Cause": "it broke"}
    assert sim.output == ["called", {"Error": "Gone", "Cause": "lost"}, broken]


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.stem)
def test_texts_are_read_and_written_as_before(path: Path) -> None:
    """A text loads, and is the one that this version writes: servers of both may share a run."""
    for execution in json.loads(path.read_text())["executions"]:
        values = engine.DictValues(execution["values"])
        for text in execution["texts"]:
            assert engine.Run.loads(text, values).dumps() == text


def test_a_text_of_another_class_is_a_text() -> None:
    """A caller may start an execution with marked texts, as those of templates."""

    class Marked(str):
        """A text that knows where it is from."""

        __slots__ = ()

        def __str__(self) -> str:
            return self

    sim = Sim(machine("A", A=activity()), "long " * 300)
    marked = replace(sim.run.frames[1], input=Marked(sim.run.frames[1].input), state=Marked("A"))
    about = {**sim.run.about, "execution_name": Marked("run")}
    assert replace(sim.run, about=about, frames={1: marked}).dumps() == sim.run.dumps()


def test_every_shape_of_a_format_has_its_file() -> None:
    """Each file has something that the one before had not."""
    stems = [path.stem[:2] for path in FORMATS]
    assert stems == ["1a", "1b", "1c", "1d", "2a", "3a", "3b", "4a", "4b"]
    assert {json.loads(path.read_text())["snapshot"]["format"] for path in FORMATS} == set(FIELDS)


def test_a_new_field_is_a_new_format() -> None:
    """What a snapshot may contain is written down for the format it says."""
    fields = {kind: set(names.split()) for kind, names in FIELDS[FORMAT].items()}
    assert set(Frame.__struct_fields__) == fields["frame"]
    assert set(Group.__struct_fields__) == fields["group"]
    assert set(engine.RunTask.__struct_fields__) == fields["task"]
    assert set(engine.DebugPlan.__struct_fields__) == fields["plan"]
    assert set(engine.Breakpoint.__struct_fields__) == fields["breakpoint"]
    assert set(LineDestination.__struct_fields__) == fields["destination"]
    assert set(engine.Halt.__struct_fields__) == fields["halt"]
    assert set(FaultPlan.__struct_fields__) == fields["faults"]
    assert set(engine.Fault.__struct_fields__) == fields["fault"]
    assert set(DelayedCall.__struct_fields__) == fields["delayed"]
    assert set(FaultyAnswer.__struct_fields__) == fields["answer"]
    assert set(LateAnswer.__struct_fields__) == fields["late"]
    assert set(FailingChildren.__struct_fields__) == fields["children"]
    held, halted = revived(HELD[-1]).run, revived(HALTED[-1]).run
    faulty, late = revived(FAULTY[-1]).run, revived(LATE[-1]).run
    whole = replace(held, plan=halted.plan, faults=faulty.faults)
    assert engine.Run.loads(faulty.dumps(), faulty.values) == faulty
    assert engine.Run.loads(late.dumps(), late.values) == late
    assert set(json.loads(whole.dumps())) - {"format"} == fields["run"]
    assert engine.Run.loads(held.dumps(), held.values) == held
    assert engine.Run.loads(halted.dumps(), halted.values) == halted


def test_only_what_a_run_has_makes_its_format_newer() -> None:
    """A run without breakpoints and faults is written as before there were any."""
    held, halted = revived(HELD[-1]).run, revived(HALTED[-1]).run
    faulty = revived(FAULTY[-1]).run
    plain = Sim(machine("A", A=activity())).run
    assert [json.loads(run.dumps())["format"] for run in (plain, held, halted, faulty)] == [
        *(1, 2, 3, 4)
    ]


@pytest.mark.parametrize(
    ("number", "error"),
    [(FORMAT + 1, engine.NewerFormat), (0, ValueError), ("1", ValueError), (None, ValueError)],
)
def test_unknown_formats_are_refused(number: Any, error: type[Exception]) -> None:
    """A later one says so, whatever else is in it; nonsense is just that."""
    raw = {**json.loads(Sim(machine("A", A=activity())).run.dumps()), "format": number, "new": 1}
    with pytest.raises(ValueError, match=rf"snapshot format: got {number}, wanted") as caught:
        engine.Run.loads(json.dumps(raw), engine.DictValues())
    assert type(caught.value) is error


_FIRST_READS = """
import sys, threading
from engine.runtime.run import NEW_RUN, DictValues, Run

sys.setswitchinterval(1e-6)
together = threading.Barrier(8)

def read():
    together.wait()
    Run.loads(NEW_RUN.dumps(), DictValues())

threads = [threading.Thread(target=read) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


@pytest.mark.slow
def test_the_first_reads_of_a_process_may_be_at_once() -> None:
    """Else msgspec ends the process by a signal, if threads let it read types at the same time."""
    for _ in range(5):
        subprocess.run([sys.executable, "-c", _FIRST_READS], cwd=ROOT, check=True)
