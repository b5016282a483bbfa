"""Lines of control stop at breakpoints, alone, and go on as a person says."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

import engine
from engine import Breakpoint, BreakTime
from engine.runtime.memory import start_message
from tests.engine.runtime.harness import Sim, activity, machine, task
from tests.engine.runtime.stopped_sim import (
    AFTER,
    BEFORE,
    ERROR,
    StoppedSim,
    each,
    go_on,
    passes,
    sleep,
    step_over,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator


# -- where a line stops ----------------------------------------------------------------------------


def test_a_line_stops_before_the_work_of_a_state() -> None:
    """The state is entered, its task is not scheduled; the parameters are there to be seen."""
    sim = StoppedSim(machine("A", A=passes(Next="T"), T=task(InputPath="$.n")), {"n": 7}, "T")
    assert sim.stands == [("T", "before", "")]
    assert sim.types[-1] == "TaskStateEntered"
    assert not sim.tasks
    line = sim.lines[0]
    assert (line.input, line.parameters, line.kind) == ('{"n":7}', "7", "Task")
    sim.release(go_on)
    sim.succeed("T", "yes")
    assert sim.output == "yes"


def test_a_line_stops_after_a_state_succeeded() -> None:
    """The output is there, and the state is not left yet; variables are assigned as it leaves."""
    states = {"T": task(Assign={"v.$": "$"}, Next="B"), "B": passes(Parameters={"v.$": "$v"})}
    sim = StoppedSim(machine("T", **states), 1, Breakpoint("T", AFTER))
    sim.succeed("T", "result")
    assert sim.types[-1] == "LambdaFunctionSucceeded"
    assert sim.lines[0].halt.output == '"result"'
    sim.release(go_on)
    assert sim.output == {"v": "result"}


@pytest.mark.parametrize(
    "first",
    [
        {"Type": "Pass"},
        {"Type": "Wait", "Seconds": 0},
        {"Type": "Choice", "Choices": [], "Default": "Z"},
        {"Type": "Parallel", "Branches": [machine("I", I={"Type": "Pass"})]},
        {"Type": "Map", "ItemsPath": "$.i", "ItemProcessor": machine("I", I={"Type": "Pass"})},
        {"Type": "Succeed"},
    ],
    ids=lambda state: state["Type"],
)
@pytest.mark.parametrize("when", [BEFORE, AFTER])
def test_every_type_stops_and_has_its_history(first: dict[str, Any], when: BreakTime) -> None:
    """The events are those of an execution that never stopped."""
    if first["Type"] == "Choice":
        rule = {"Variable": "$.i", "IsPresent": False, "Next": "Z"}
        state = {**first, "Choices": [rule]}
    else:
        state = first if first["Type"] == "Succeed" else {**first, "Next": "Z"}
    rest = {} if first["Type"] == "Succeed" else {"Z": passes()}
    definition = machine("A", A=state, **rest)
    data = {"i": [1, 2]}
    sim = StoppedSim(definition, data, Breakpoint("A", when))
    assert sim.stands == [("A", str(when), "")]
    sim.release(go_on)
    assert sim.story == Sim(definition, data).story
    assert sim.run.plan is None


def test_an_error_stops_before_its_retriers_are_asked() -> None:
    """Then the Retrier takes it, as if nothing had been."""
    retry = [{"ErrorEquals": ["Boom"], "MaxAttempts": 1}]
    sim = StoppedSim(machine("T", T=task(Retry=retry)), 1, Breakpoint("T", ERROR))
    sim.fail("T")
    assert not sim.timers
    halt = sim.lines[0].halt
    assert (halt.error, halt.cause) == ("Boom", "it broke")
    sim.release(go_on)
    sim.fire()
    sim.fail("T")
    sim.release(go_on)
    assert sim.finish is not None
    assert (sim.finish.status, sim.finish.error) == ("FAILED", "Boom")


@pytest.mark.parametrize("texts", [{"Error": "Boom", "Cause": "it broke"}, {}])
def test_a_fail_state_stops_with_its_error(texts: dict[str, str]) -> None:
    """A Fail fails by intention, but its error is at hand as that of any other state."""
    definition = machine("A", A=passes(Next="F"), F={"Type": "Fail", **texts})
    sim = StoppedSim(definition, 1, Breakpoint("F", ERROR))
    assert sim.stands == [("F", "error", "")]
    halt = sim.lines[0].halt
    assert (halt.error, halt.cause) == (texts.get("Error"), texts.get("Cause"))
    sim.release(go_on)
    assert sim.story == Sim(definition, 1).story
    assert sim.finish is not None
    assert (sim.finish.status, sim.finish.error) == ("FAILED", texts.get("Error"))


def test_a_fail_state_in_a_branch_stops_at_itself_and_then_at_the_state_around_it() -> None:
    """Once a person lets its error go on, the breakpoint at the Parallel stops the same line."""
    inner = machine("F", F={"Type": "Fail", "Error": "Boom"})
    definition = machine("All", All={"Type": "Parallel", "Branches": [inner]})
    places = (Breakpoint("F", ERROR), Breakpoint("All", ERROR))
    sim = StoppedSim(definition, 1, *places)
    assert [line.halt.state for line in sim.lines] == ["F"]
    sim.release(go_on)
    assert [line.halt.state for line in sim.lines] == ["All"]
    sim.release(go_on)
    assert sim.story == Sim(definition, 1).story


def test_a_condition_at_a_fail_state_sees_its_error() -> None:
    """Only the line whose error the condition wants stops."""
    definition = machine("F", F={"Type": "Fail", "ErrorPath": "$.e"})
    place = Breakpoint("F", ERROR, "$states.errorOutput.Error = 'Bad'")
    assert StoppedSim(definition, {"e": "Bad"}, place).stands == [("F", "error", "")]
    assert StoppedSim(definition, {"e": "Other"}, place).finish is not None


def test_an_error_that_goes_up_stops_the_line_in_which_it_arose() -> None:
    """Its siblings are not aborted, and a redrive after all goes on from both."""
    branches = [machine("T", T=task()), machine("S", S=activity())]
    inner = machine("Both", Both={"Type": "Parallel", "Branches": branches})
    outer = {"Type": "Parallel", "Branches": [inner, machine("W", W=sleep())]}
    sim = StoppedSim(machine("All", All=outer), 1, Breakpoint("All", ERROR))
    sim.fail("T")
    assert sim.stands == [("T", "error", "All[0]/Both[0]")]
    assert "TaskStateAborted" not in sim.types
    sim.release(go_on)
    assert sim.finish is not None
    assert sim.finish.error == "Boom"
    sim.redrive()
    sim.succeed("S", "second")
    sim.succeed("T", "first")
    sim.fire()
    assert sim.output == [["first", "second"], 1]


def test_an_error_that_a_state_between_takes_stops_nobody_outside() -> None:
    """The Catcher of the inner Parallel takes it."""
    catch = [{"ErrorEquals": ["States.ALL"], "Next": "C"}]
    inner = {"Type": "Parallel", "Branches": [machine("T", T=task())], "Catch": catch}
    branch = machine("Inner", Inner=inner, C=passes())
    outer = {"Type": "Parallel", "Branches": [branch]}
    sim = StoppedSim(machine("All", All=outer), 1, Breakpoint("All", ERROR))
    sim.fail("T")
    assert sim.output == [{"Error": "Boom", "Cause": "it broke"}]


def test_two_states_around_a_line_stop_it_one_after_the_other() -> None:
    """The breakpoint of the inner one is behind it when it goes on."""
    inner = {"Type": "Parallel", "Branches": [machine("T", T=task())]}
    outer = {"Type": "Parallel", "Branches": [machine("Inner", Inner=inner)]}
    places = [Breakpoint(name, ERROR) for name in ("T", "Inner", "All")]
    sim = StoppedSim(machine("All", All=outer), 1, *places)
    sim.fail("T")
    stood = []
    while sim.finish is None:
        stood.append(sim.lines[0].halt.state)
        sim.release(go_on)
    assert stood == ["T", "Inner", "All"]


# -- conditions and counts -------------------------------------------------------------------------


def test_a_condition_chooses_among_the_lines() -> None:
    """It reads $states and the variables; the other lines go on."""
    place = Breakpoint("P", condition="$states.input > 1 and $states.context.Map.Item.Index < 2")
    sim = StoppedSim(each(), [1, 2, 3], place)
    assert sim.stands == [("P", "before", "Each[1]")]
    assert len(sim.tasks) == 2


def test_a_condition_sees_variables_results_and_errors() -> None:
    """Each time has its own part of $states."""
    states = {"A": passes(Assign={"v": 5}, Next="T"), "T": task()}
    for place in (
        Breakpoint("T", condition="$v = 5"),
        Breakpoint("T", AFTER, condition="$states.result.ok"),
    ):
        sim = StoppedSim(machine("A", **states), {}, place)
        if sim.tasks:
            sim.succeed("T", {"ok": True})
        assert sim.stands == [("T", str(place.when), "")]
    place = Breakpoint("T", ERROR, condition="$states.errorOutput.Error = 'Boom'")
    sim = StoppedSim(machine("A", **states), {}, place)
    sim.fail("T")
    assert sim.stands == [("T", "error", "")]


@pytest.mark.parametrize("condition", ["$states.input", "$states.input.missing", "1", "'true'"])
def test_only_true_holds(condition: str) -> None:
    """Another value, or none, stops nobody."""
    sim = StoppedSim(machine("A", A=passes()), {"x": 1}, Breakpoint("A", condition=condition))
    assert sim.output == {"x": 1}


def test_a_condition_that_fails_stops_and_says_why() -> None:
    """Else a mistake in it would be a breakpoint that is never reached."""
    sim = StoppedSim(
        machine("A", A=passes()), "a", Breakpoint("A", condition="$states.input + 1 = 2")
    )
    assert "Condition" in sim.lines[0].halt.problem


def test_a_count_lets_the_first_times_pass() -> None:
    """The third time stops, and each later one; a count counts what meets the condition."""
    place = Breakpoint("P", condition="$states.input > 1", hits=3)
    sim = StoppedSim(each(), [1, 2, 3, 4, 5], place)
    assert sim.stands == [("P", "before", "Each[3]"), ("P", "before", "Each[4]")]


def test_a_condition_draws_nothing_from_the_random_source_of_the_states() -> None:
    """The histories with and without are the same."""
    definition = machine("A", A=passes(Parameters={"r.$": "States.MathRandom(1, 1000000)"}))
    sim = StoppedSim(definition, {}, Breakpoint("A", condition="$random() > 2"))
    assert sim.output == Sim(definition, {}).output


# -- going on --------------------------------------------------------------------------------------


def test_lines_stop_independently() -> None:
    """One goes on while another stands, and both end up in the result."""
    branches = [machine("P", P=passes()), machine("Q", Q=passes()), machine("T", T=task())]
    sim = StoppedSim(machine("A", A={"Type": "Parallel", "Branches": branches}), 1, "P", "Q")
    assert sim.stands == [("P", "before", "A[0]"), ("Q", "before", "A[1]")]
    sim.succeed("T", 3)
    sim.release(lambda line: line.go_on(input=2), at=1)
    assert sim.stands == [("P", "before", "A[0]")]
    sim.release(go_on)
    assert sim.output == [1, 2, 3]


def test_an_edit_is_a_note_beside_the_history() -> None:
    """The event that is written stays; the work sees the edit, and so does a ResultPath."""
    long = "x" * 3_000
    state = task(ResultPath="$.r", Parameters={"v.$": "$v", "i.$": "$.i"})
    definition = machine("A", A=passes(Assign={"v": 1}, Next="T"), T=state)
    sim = StoppedSim(definition, {"i": long}, "T")
    sim.release(lambda line: line.go_on(input={"i": long * 2}, variables={"v": 2}))
    assert [(note.what, note.state, note.event) for note in sim.notes] == [
        ("input", "T", 4),
        ("variables", "T", 4),
    ]
    assert json.loads(sim.notes[0].before) == {"i": long}
    assert (sim.notes[1].before, sim.notes[1].after) == ('{"v":1}', '{"v":2}')
    assert json.loads(sim.tasks[sim.task("T")].input) == {"v": 2, "i": long * 2}
    sim.succeed("T", "r")
    assert sim.output == {"i": long * 2, "r": "r"}
    entered = [event for event in sim.events if event.type == "TaskStateEntered"]
    assert entered[0].details is not None
    assert json.loads(entered[0].details["input"]) == {"i": long}
    assert not sim.values


def test_an_edited_output_is_what_the_next_state_gets() -> None:
    """The ...StateExited event has it: it is what left the state."""
    sim = StoppedSim(machine("A", A=passes(Next="B"), B=passes()), 1, Breakpoint("A", AFTER))
    sim.release(lambda line: line.go_on(output=2))
    assert sim.output == 2
    assert (sim.notes[0].before, sim.notes[0].after) == ("1", "2")


def test_a_step_over_stops_at_the_next_state_of_the_line() -> None:
    """Over a Parallel as one state, out of a branch, and not at a retry."""
    branch = machine("P", P=passes(Next="Q"), Q=passes())
    states = {
        "All": {"Type": "Parallel", "Branches": [branch], "Next": "T"},
        "T": task(Retry=[{"ErrorEquals": ["Boom"]}], Next="Z"),
        "Z": passes(),
    }
    sim = StoppedSim(machine("All", **states), 1, "All", "P")
    stood = [sim.stands[0][0]]
    sim.release(step_over)
    for _ in range(3):
        stood.append(sim.stands[0][0])
        sim.release(step_over)
    sim.fail("T")
    assert sim.stands == []
    sim.fire()
    sim.succeed("T", "done")
    stood.append(sim.stands[0][0])
    sim.release(step_over)
    assert stood == ["All", "P", "Q", "T", "Z"]
    assert sim.output == "done"


@pytest.mark.parametrize("kind", [task, activity])
def test_a_task_is_answered_without_a_call(kind: Callable[..., dict[str, Any]]) -> None:
    """It has its events and its ResultSelector, and nothing is to be run."""
    definition = machine("T", T=kind(ResultSelector={"got.$": "$.v"}))
    sim = StoppedSim(definition, 1, "T")
    sim.release(lambda line: line.answer({"v": 5}))
    assert sim.output == {"got": 5}
    assert not sim.tasks
    assert [task.task.state for task in sim.answered] == ["T"]
    called = Sim(definition, 1)
    if kind is activity:
        called.send(engine.TaskStarted(called.task("T")))
    called.succeed("T", {"v": 5})
    assert sim.story == called.story
    assert sim.notes[0].what == "answer"


def test_a_task_is_answered_with_an_error() -> None:
    """Retry and Catch take it; a breakpoint before the work stops each attempt."""
    definition = machine("T", T=task(Retry=[{"ErrorEquals": ["Down"], "MaxAttempts": 1}]))
    sim = StoppedSim(definition, 1, "T")
    sim.release(lambda line: line.answer_error("Down", "no power"))
    sim.fire()
    sim.release(lambda line: line.answer("up"))
    assert sim.output == "up"
    assert json.loads(sim.notes[0].after) == {"Error": "Down", "Cause": "no power"}


@pytest.mark.parametrize("place", [Breakpoint("T"), Breakpoint("T", ERROR)])
def test_a_state_is_skipped_with_an_output(place: Breakpoint) -> None:
    """Before its work, or when it has failed."""
    sim = StoppedSim(machine("T", T=task(Next="Z"), Z=passes()), 1, place)
    if sim.tasks:
        sim.fail("T")
    sim.release(lambda line: line.skip({"by": "hand"}))
    assert sim.output == {"by": "hand"}


def test_a_state_is_failed_by_hand() -> None:
    """Its Catcher takes it."""
    catch = [{"ErrorEquals": ["Mine"], "Next": "C"}]
    sim = StoppedSim(machine("T", T=task(Catch=catch), C=passes()), 1, "T", Breakpoint("T", ERROR))
    sim.release(lambda line: line.fail("Mine", "because"))
    assert sim.output == {"Error": "Mine", "Cause": "because"}


@pytest.mark.parametrize(
    ("place", "message", "words"),
    [
        ("C", engine.Skip(1, "{}"), "A Choice cannot be skipped"),
        ("C", engine.AnswerTask(1, output="1"), "Only a Task"),
        ("T", engine.Release(1, input="{"), "Input: got no JSON"),
        ("T", engine.Release(1, variables="[]"), "wanted a JSON object"),
        ("T", engine.Release(1, variables='{"a b":1}'), "'a b': the variable name contains"),
        ("T", engine.Release(1, variables='{"": 1}'), "'': the variable name contains invalid"),
        ("T", engine.Release(1, variables=f'{{"{"v" * 81}":1}}'), "exceeds the 80-character"),
        ("T", engine.Release(1, variables='{"states":1}'), "reserved variable '$states'."),
        ("T", engine.Release(1, output="1"), "after the state"),
        ("T", engine.AnswerTask(1, error="E" * 257), "error has 257 characters; at most 256"),
        ("T", engine.FailState(1, "E" * 257), "error has 257 characters; at most 256"),
        ("T", engine.FailState(1, "E", "c" * 32_769), "cause has 32769 characters; at most 32768"),
        ("T", engine.AnswerTask(1, output="x" * 300_000), "more than"),
    ],
)
def test_what_does_not_fit_is_refused_and_changes_nothing(
    place: str, message: engine.ReleaseMessage, words: str
) -> None:
    """The sender learns why; the engine does not take it either."""
    rule = {"Variable": "$.i", "IsPresent": True, "Next": "T"}
    definition = machine("C", C={"Type": "Choice", "Choices": [rule]}, T=task())
    sim = StoppedSim(definition, {"i": 1}, place)
    assert words in sim.lines[0].problem_of(message)
    step = sim.send(message)
    assert (step.events, step.commands) == ((), ())
    assert len(sim.lines) == 1


def test_what_came_twice_changes_nothing() -> None:
    """A number of a halt is used once, also after other breakpoints are set."""
    sim = StoppedSim(machine("A", A=passes(Next="B"), B=passes()), 1, "A")
    sim.send(engine.SetBreakpoints('[{"state":"B"}]'))
    sim.send(engine.Release(1))
    assert sim.stands == [("B", "before", "")]
    sim.send(engine.Release(1))
    assert sim.stands == [("B", "before", "")]


# -- around it -------------------------------------------------------------------------------------


def test_breakpoints_are_set_and_taken_away_while_it_runs() -> None:
    """A line that stands stays; the next state does not stop any more."""
    sim = StoppedSim(machine("T", T=task(Next="A"), A=passes(Next="B"), B=passes()), 1)
    sim.send(engine.SetBreakpoints('[{"state":"A"},{"state":"B","when":"after"}]'))
    sim.succeed("T", 1)
    sim.send(engine.SetBreakpoints("[]"))
    assert sim.stands == [("A", "before", "")]
    sim.release(go_on)
    assert sim.output == 1


def test_a_stop_ends_what_stands_and_a_redrive_stops_again() -> None:
    """The snapshot after the end has no line at a breakpoint."""
    sim = StoppedSim(machine("T", T=task()), 1, "T")
    sim.send(engine.Stop())
    assert sim.run.plan is not None
    assert not sim.run.plan.halts
    sim.redrive()
    assert sim.stands == [("T", "before", "")]
    sim.release(go_on)
    sim.succeed("T", 2)
    assert sim.output == 2


def test_a_sibling_that_fails_aborts_what_stands() -> None:
    """It is gone, and so is its halt."""
    catch = [{"ErrorEquals": ["States.ALL"], "Next": "C"}]
    branches = [machine("P", P=sleep()), machine("T", T=task())]
    both = {"Type": "Parallel", "Branches": branches, "Catch": catch}
    sim = StoppedSim(machine("A", A=both, C=passes()), 1, "P")
    sim.fail("T")
    assert "WaitStateAborted" in sim.types
    assert sim.output == {"Error": "Boom", "Cause": "it broke"}


def test_an_expression_that_fails_after_a_stop_has_the_history_of_one_without() -> None:
    """EvaluationFailed points at the event before the state, whatever stood between."""
    state = passes(Output="{% $states.input.a.b + 'x' %}")
    definition = {**machine("A", A=state), "QueryLanguage": "JSONata"}
    sim = StoppedSim(definition, {"a": {"b": "y"}}, "A")
    sim.release(go_on)
    assert sim.story == Sim(definition, {"a": {"b": "y"}}).story


@pytest.mark.parametrize("budget", [1, 2, 3])
def test_where_a_step_ends_changes_nothing(budget: int) -> None:
    """The halts and the history are the same with a small budget."""
    whole = StoppedSim(each(), [1, 2, 3], Breakpoint("T", hits=2))
    run = engine.NEW_RUN.with_plan(engine.DebugPlan.of([Breakpoint("T", hits=2)]))
    events: list[engine.Event] = []
    message: engine.Message = start_message([1, 2, 3])
    values = engine.DictValues()
    while True:
        moment = engine.Moment(whole.now_ms, 1, b"key")
        step = engine.advance(whole.machine, run.reading(values), message, moment, budget=budget)
        run = step.run
        values.update(step.values)
        events.extend(step.events)
        if not run.ready:
            break
        message = engine.Continue()
    assert [event.type for event in events] == whole.types
    assert numbers(run) == numbers(whole.run) == [(1, 4), (2, 5)]


def numbers(run: engine.Run) -> list[tuple[int, int]]:
    """Return the number and the frame of each halt."""
    return [] if run.plan is None else [(halt.number, halt.frame) for halt in run.plan.halts]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "got no JSON"),
        ("{}", "wanted an array"),
        ('[{"state":"A","state":"F"}]', "the key 'state' stands twice"),
        ('[{"when":"before"}]', "wanted a state's name"),
        ('[{"state":"Nope"}]', "got the state 'Nope', wanted one of the state machine's own: A, F"),
        ('[{"state":"A","when":"during"}]', "wanted before, after, error"),
        ('[{"state":"A","condition":"1 +"}]', "wanted JSONata"),
        ('[{"state":"A","hits":0}]', "got 0, wanted 1 to 1,000,000"),
        ('[{"state":"A","hits":true}]', "wanted an integer"),
        ('[{"state":"A","color":1}]', "got 'color', wanted state, when"),
        ('[{"state":"F","when":"after"}]', "a Fail never succeeds"),
    ],
)
def test_a_breakpoint_that_never_stops_is_refused(text: str, words: str) -> None:
    """The sentence says what, where, got and wanted."""
    parsed = engine.parse(json.dumps(machine("A", A=passes(Next="F"), F={"Type": "Fail"})))
    with pytest.raises(engine.BreakpointError) as caught:
        engine.read_breakpoints(text, parsed)
    assert words in str(caught.value)


def test_what_is_written_is_read() -> None:
    """The text of breakpoints has all of them."""
    parsed = engine.parse(json.dumps(machine("A", A=passes())))
    places = (Breakpoint("A"), Breakpoint("A", AFTER, "$states.result > 1", 3))
    assert engine.read_breakpoints(engine.breakpoints_text(places), parsed) == places


# -- the runner in memory --------------------------------------------------------------------------


def answer_next(queue: Iterator[Any], line: engine.HaltedLine) -> Any:
    """Let a line go on by the next answer."""
    return next(queue)(line)


def run_with(answers: Iterable[Callable[[engine.HaltedLine], Any]]) -> engine.Result:
    """Run a machine whose task must not be called; each stop takes the next answer."""
    queue = iter(answers)
    return engine.run(
        machine("T", T=task(Next="Z"), Z=passes()),
        {"n": 1},
        breakpoints=["T", Breakpoint("Z", AFTER)],
        debug=partial(answer_next, queue),
    )


def test_a_test_may_stop_look_and_change() -> None:
    """``engine.run`` hands each line that stops to a function."""
    result = run_with([lambda line: line.answer(5), lambda line: line.go_on(output=6)])
    assert (result.status, result.output) == ("SUCCEEDED", 6)
    assert [edit.what for edit in result.edits] == ["answer", "output"]


def test_a_test_may_step_into_and_run_to_a_state() -> None:
    """As a person on the page."""
    moves: dict[str, Any] = {"Each": {"into": True}, "P": {"run_to": "T"}}
    stood = []

    def debug(line: engine.HaltedLine) -> Any:
        stood.append((line.state, line.place))
        return line.answer(line.place) if line.state == "T" else line.go_on(**moves[line.state])

    result = engine.run(each(), [1, 2], breakpoints=["Each"], debug=debug)
    assert result.output == ["Each[0]", "Each[1]"]
    assert sorted(stood) == sorted(
        [("Each", ""), *((state, f"Each[{n}]") for state in "PT" for n in (0, 1))]
    )


def test_a_test_learns_what_it_did_wrong() -> None:
    """An act that does not fit is its own mistake."""
    with pytest.raises(engine.BreakpointError, match="can only be edited after"):
        run_with([lambda line: line.go_on(output=6)])
    with pytest.raises(engine.BreakpointError, match="wanted a function"):
        engine.run(machine("A", A=passes()), breakpoints=["A"])
