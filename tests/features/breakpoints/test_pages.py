"""The page of breakpoints: it shows what stands, and lets it continue, without a script."""

from __future__ import annotations

import json
import re
from html import unescape
from typing import TYPE_CHECKING, Any

import pytest

import engine
from console.db.audit import Actor
from console.masking import mask
from console.models import DebugEdit, Execution, TaskRow
from console.store.executions import breakpoints
from tests.console.store.helpers import create, crowd, drain, function, start

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.test import Client

    from console.models import Project

RUN = "/machines/machine/executions/run/"
PAGE = f"{RUN}breakpoints/"
DEFINITION = {
    "StartAt": "Call",
    "States": {
        "Call": {**function("work"), "Next": "Done"},
        "Done": {"Type": "Pass", "End": True},
    },
}


@pytest.fixture
def execution(project: Project) -> Execution:
    """Return an execution that stands before its call."""
    places = (engine.Breakpoint("Call", condition="$states.input.card = 'secret-4711'"),)
    execution = start(
        create(project, DEFINITION),
        {"card": "secret-4711", "n": 1},
        name="run",
        breakpoints=places,
    )
    drain(execution)
    return execution


def shown(answer: Any) -> str:
    """Return the text of a page."""
    return str(answer.content.decode())


def post(client: Client, act: str, **fields: str) -> Any:
    """Press a button."""
    return client.post(PAGE, {"act": act, **fields}, follow=True)


def test_a_line_is_seen_and_continues(client: Client, execution: Execution) -> None:
    """Its input, its parameters and its place are there; the edit is noted afterwards."""
    assert f'href="{PAGE}"' in shown(client.get(RUN))
    assert "Before its work, until somebody continues it" in shown(client.get(RUN))
    text = shown(client.get(PAGE))
    assert "Before its work" in text
    assert "secret-4711" in text
    answer = post(client, "continue", halt="1", input='{"n":2}', variables="{}")
    assert "Call continues." in shown(answer)
    assert "The execution is not halted at a breakpoint." in shown(answer)
    assert "input by" in shown(answer)
    assert TaskRow.objects.get(execution=execution).input == '{"n":2}'


def places_of(answer: Any) -> list[str]:
    """Return the texts by which the buttons of the page name its breakpoints."""
    return [unescape(text) for text in re.findall(r'name="place" value="([^"]*)"', shown(answer))]


def test_breakpoints_are_set_and_removed(client: Client, execution: Execution) -> None:
    """The list has each with its condition and its count."""
    post(client, "add", state="Done", when="after", condition="{% $states.result.n &gt; 1 %}")
    answer = post(client, "add", state="Done", when="after", condition="true", hits="3")
    assert "from hit 3 on" in shown(answer)
    [call, _] = places_of(answer)
    assert "The breakpoint is removed." in shown(post(client, "remove", place=call))
    places = breakpoints.debugged(execution)
    assert places is not None
    assert [place.state for place in places.breakpoints] == ["Done"]


def test_an_old_page_removes_no_other_breakpoint(client: Client, execution: Execution) -> None:
    """Two people remove the same breakpoint, or one clicks twice: the others stay."""
    [first, _] = places_of(post(client, "add", state="Done", when="after"))
    post(client, "remove", place=first)
    answer = client.post(PAGE, {"act": "remove", "place": first})
    assert "removed in the meantime" in shown(answer)
    assert len(places_of(answer)) == 1


def test_a_state_at_which_it_cannot_stop_is_named(client: Client, execution: Execution) -> None:
    """The panel of a state in a distributed Map has the link, too: no other state is meant."""
    del execution
    assert "cannot stop at" not in shown(client.get(f"{PAGE}?state=Done"))
    assert "cannot stop at the state &#x27;Inner&#x27;" in shown(client.get(f"{PAGE}?state=Inner"))


def test_a_task_is_answered_and_a_state_skipped(client: Client, execution: Execution) -> None:
    """The execution ends with what was typed."""
    post(client, "add", state="Done", when="before")
    assert "Call is answered." in shown(post(client, "answer", halt="1", output='{"paid":1}'))
    assert "Done is skipped." in shown(post(client, "skip", halt="2", output='"skipped"'))
    assert Execution.objects.get(pk=execution.pk).output == '"skipped"'
    assert "The execution has ended." in shown(client.get(PAGE))


def test_a_state_is_failed(client: Client, execution: Execution) -> None:
    """The execution fails with the error, as no Catcher takes it."""
    post(client, "fail", halt="1", error="Mine", cause="because")
    assert Execution.objects.get(pk=execution.pk).error == "Mine"


def test_a_step_leads_to_the_next_state(client: Client, execution: Execution) -> None:
    """A task that is answered with an error fails; a step over stops before the next state."""
    post(client, "add", state="Call", when="after")
    post(client, "answer", halt="1", output="1")
    assert "After its success" in shown(client.get(PAGE))
    answer = post(client, "step", halt="2", output="2", variables="{}")
    assert "Call steps." in shown(answer)
    assert "Before its work" in shown(answer)
    assert DebugEdit.objects.filter(execution=execution, what="output").exists()


def test_a_line_runs_to_a_state(client: Client, execution: Execution) -> None:
    """It stops there once, without a breakpoint."""
    text = shown(client.get(PAGE))
    assert "Run to this state" in text
    assert "Step into" not in text
    assert post(client, "into", halt="1").status_code == 422
    assert post(client, "run-to", halt="1", run_to="").status_code == 422
    assert post(client, "run-to", halt="1", run_to="Nope").status_code == 422
    assert "Call steps." in shown(post(client, "run-to", halt="1", run_to="Done"))
    state = breakpoints.debugged(execution)
    assert state is not None
    assert not state.lines


def test_a_line_steps_into_a_map(client: Client, project: Project) -> None:
    """Each iteration stops before its first state."""
    processor = {"StartAt": "One", "States": {"One": {"Type": "Pass", "End": True}}}
    each = {"Type": "Map", "ItemProcessor": processor, "End": True}
    machine = create(project, {"StartAt": "Each", "States": {"Each": each}})
    execution = start(machine, [1, 2], name="run", breakpoints=(engine.Breakpoint("Each"),))
    drain(execution)
    assert "Step into" in shown(client.get(PAGE))
    assert "Each steps." in shown(post(client, "into", halt="1"))
    state = breakpoints.debugged(execution)
    assert state is not None
    assert [line.place for line in state.lines] == ["Each[0]", "Each[1]"]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"act": "add", "state": "Nope"}, "got the state"),
        ({"act": "add", "state": "Call", "when": "during"}, "wanted before, after, error"),
        ({"act": "add", "state": "Call", "hits": "-1"}, "is not a number from 1"),
        ({"act": "add", "state": "Call", "condition": "1 +"}, "wanted JSONata"),
        ({"act": "remove", "place": "7"}, "removed in the meantime"),
        ({"act": "continue", "halt": "7"}, "continued in the meantime"),
        ({"act": "continue", "halt": "x"}, "is not the number"),
        ({"act": "continue", "halt": "1", "input": "{"}, "got no JSON"),
        ({"act": "continue", "halt": "1", "input": " "}, "Input: got no JSON"),
        ({"act": "continue", "halt": "1", "variables": ""}, "Variables: got no JSON"),
        ({"act": "continue", "halt": "1", "variables": '{"a-b":1}'}, "contains invalid characters"),
        ({"act": "fail", "halt": "1", "error": "E" * 257}, "error has 257 characters"),
        ({"act": "answer-error", "halt": "1", "cause": "c" * 32_769}, "cause has 32769"),
        ({"act": "skip", "halt": "1", "output": ""}, "got no JSON"),
    ],
)
def test_what_is_wrong_is_said(
    client: Client, execution: Execution, fields: dict[str, str], words: str
) -> None:
    """The page says what, and nothing has changed."""
    answer = client.post(PAGE, fields)
    assert answer.status_code == 422
    assert words in shown(answer)
    state = breakpoints.debugged(execution)
    assert state is not None
    assert [line.state for line in state.lines] == ["Call"]
    assert client.post(PAGE, {"act": "dance"}).status_code == 404


def test_hidden_values_stay_hidden(client: Client, project: Project, execution: Execution) -> None:
    """The page masks them, and an edit of something else keeps them."""
    project.masked = "$.card"
    project.save()
    text = shown(client.get(PAGE))
    assert "secret-4711" not in text
    typed = '{"card": "' + mask.MASK + '", "n": 2}'
    post(client, "continue", halt="1", input=typed, variables="{}")
    sent = TaskRow.objects.get(execution=execution).input
    assert json.loads(sent) == {"card": "secret-4711", "n": 2}


@pytest.mark.parametrize("act", ["skip", "answer", "continue"])
def test_a_mask_is_never_a_value(
    client: Client, project: Project, execution: Execution, act: str
) -> None:
    """A hidden value that is copied to another place is refused, not replaced by its mask."""
    project.masked = "$.card"
    project.save()
    typed = json.dumps({"other": mask.MASK})
    field = "input" if act == "continue" else "output"
    answer = client.post(PAGE, {"act": act, "halt": "1", field: typed})
    assert answer.status_code == 422
    assert "stands for a hidden value" in shown(answer)
    state = breakpoints.debugged(execution)
    assert state is not None
    assert [line.state for line in state.lines] == ["Call"]


def test_a_hidden_output_continues_as_it_is(client: Client, project: Project) -> None:
    """The page shows a mask; the output that was not changed stays what it was."""
    passes = {"StartAt": "Pass", "States": {"Pass": {"Type": "Pass", "End": True}}}
    after = engine.Breakpoint("Pass", engine.BreakTime.AFTER)
    execution = start(
        create(project, passes), {"card": "secret-4711"}, name="run", breakpoints=(after,)
    )
    drain(execution)
    project.masked = "$.card"
    project.save()
    text = shown(client.get(PAGE))
    assert "secret-4711" not in text
    typed = json.dumps({"card": mask.MASK}, separators=(",", ":"))
    post(client, "continue", halt="1", output=typed)
    output = Execution.objects.get(pk=execution.pk).output
    assert json.loads(output or "") == {"card": "secret-4711"}


def test_only_editors_debug(signed_in: Callable[[str], Client], execution: Execution) -> None:
    """An operator sees no link, and is refused."""
    operator, editor = signed_in("operator"), signed_in("editor")
    assert PAGE not in shown(operator.get(RUN))
    assert operator.get(PAGE).status_code == 403
    assert operator.post(PAGE, {"act": "continue", "halt": "1"}).status_code == 403
    assert "Call continues." in shown(post(editor, "continue", halt="1"))
    assert execution.status == "RUNNING"


@pytest.mark.postgres_too
@pytest.mark.django_db(transaction=True)
def test_breakpoints_of_people_at_once_all_stand(execution: Execution) -> None:
    """Nobody's breakpoint replaces another's."""
    times = list(engine.BreakTime)

    def add(number: int) -> None:
        place = engine.Breakpoint("Done", times[number])
        row = Execution.objects.get(pk=execution.pk)
        breakpoints.change_breakpoints(row, lambda places: (*places, place), Actor(f"p{number}"))

    crowd(len(times), add)
    current = breakpoints.debugged(Execution.objects.get(pk=execution.pk))
    assert current is not None
    places = {(place.state, place.when) for place in current.breakpoints}
    assert places == {("Call", engine.BreakTime.BEFORE), *(("Done", when) for when in times)}
