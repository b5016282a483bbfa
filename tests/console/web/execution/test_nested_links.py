"""An execution that a Task or a Map Run started leads to its parent, and the parent to it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from console.db.audit import Actor
from console.models import Execution, HistoryEvent, MapRun, Project, TaskRow, Timer
from console.store.executions.start import start_execution
from console.web.core.formatting import payload_view
from console.web.execution.child_signs import child_signs, parent_of
from console.web.history.traces import open_trace
from console.web.templatetags.stateyard import machine_name
from tests.console.store.helpers import PASS, create, drain, ended, start
from tests.console.web.helpers import markup, page
from tests.console.worker.nesting import machine_of, members, started, starting, worked
from tests.features.execution_tree.test_family import fails
from tests.features.map_runs.test_map_run import FAILS, over

if TYPE_CHECKING:
    from django.test import Client

    from console.worker import Embedded

SYNC = "arn:aws:states:::states:startExecution.sync:2"
ALONE = "arn:aws:states:::states:startExecution"


def calls(*states: tuple[str, str, str]) -> dict[str, Any]:
    """Return a machine of Tasks in a row: name, Resource, ARN of the machine it starts."""
    names = [name for name, _, _ in states]
    return {
        "StartAt": names[0],
        "States": {
            name: {
                "Type": "Task",
                "Resource": resource,
                "Parameters": {"StateMachineArn": arn},
                **({"Next": names[place + 1]} if place + 1 < len(names) else {"End": True}),
            }
            for place, (name, resource, arn) in enumerate(states)
        },
    }


def goes_on(execution: Execution) -> Execution:
    """Work an execution and those below it until it has ended."""
    for _ in range(10):
        execution = worked(execution)
        for child in Execution.objects.filter(parent=execution.pk, status="RUNNING"):
            worked(child)
        if execution.status != "RUNNING":
            break
    return execution


@pytest.fixture
def order(project: Project) -> Execution:
    """Return an execution that started three others, the last of which failed."""
    members(project, ada="editor")
    fine = machine_of(project, "ada", PASS, "pack")
    bad = machine_of(project, "ada", fails("CardRefused"), "charge")
    states = [("Pack", SYNC, fine.arn), ("Notify", ALONE, fine.arn), ("Charge", SYNC, bad.arn)]
    execution = goes_on(started(machine_of(project, "ada", calls(*states), "order"), "ada"))
    assert execution.status == "FAILED"
    return execution


def children(order: Execution) -> dict[str, Execution]:
    """Return the executions that the three Tasks started."""
    rows = Execution.objects.filter(parent=order.pk).order_by("pk")
    return dict(zip(("Pack", "Notify", "Charge"), rows, strict=True))


def test_a_child_names_its_parent_and_the_state(order: Execution, client: Client) -> None:
    """That waits for it or not; its person stands beside it."""
    for state, child in children(order).items():
        shown = markup(client.get(page(child)))
        assert f'<a id="parent" href="{page(order)}"' in shown
        assert f'<a href="{page(order)}?step={state}#workflow"><bdi>{state}</bdi></a>' in shown
        assert "for<bdi>ada</bdi>" in shown
    assert 'id="parent"' not in markup(client.get(page(order)))


def test_rows_of_steps_lead_to_what_they_started(order: Execution, client: Client) -> None:
    """As the boxes of the graph do, in words."""
    shown = markup(client.get(page(order, "?view=steps")))
    rows = shown.partition('id="step-table"')[2].partition("</table>")[0]
    assert rows.count("1 child execution</a>") == len(children(order))
    assert f'href="{reverse("arn", args=[children(order)["Pack"].arn])}"' in rows


def test_two_calls_at_once_are_not_guessed_at(order: Execution) -> None:
    """A wrong state would lead its reader astray."""
    child = children(order)["Notify"]
    calls_of_order = TaskRow.objects.filter(execution=order)
    calls_of_order.update(pattern="", closed_ms=None, scheduled_ms=order.start_ms)
    parent = parent_of(child)
    assert parent is not None
    assert (parent.execution, parent.state) == (order, "")
    calls_of_order.exclude(state="Notify").update(closed_ms=1)
    parent = parent_of(child)
    assert parent is not None
    assert parent.state == "Notify"


def test_a_child_of_a_deleted_parent_says_so(order: Execution, client: Client) -> None:
    """And of another project, which its reader does not see."""
    child = children(order)["Pack"]
    Execution.objects.filter(pk=child.pk).update(parent=10**9)
    assert "a deleted execution" in markup(client.get(page(child)))
    other = Project.objects.create(name="other", account_id="999999999999")
    Execution.objects.filter(pk=child.pk).update(parent=order.pk)
    Execution.objects.filter(pk=order.pk).update(project=other.pk)
    assert order.name not in markup(client.get(page(child)))


@pytest.mark.postgres_too
def test_the_step_and_its_events_lead_to_the_child(order: Execution, client: Client) -> None:
    """With its status; a step that starts nothing needs no query for it."""
    for state, child in children(order).items():
        word = "Failed" if state == "Charge" else "Succeeded"
        link = f'href="{page(child)}"'
        shown = markup(client.get(page(order, f"?step={state}")))
        step = shown.partition('id="step-status"')[2].partition("</nav>")[0]
        assert link in step
        assert word in step
        named = HistoryEvent.objects.filter(
            execution=order,
            details__contains=child.arn,
            type__in=("TaskSubmitted", "TaskSucceeded"),
        )
        number = named.order_by("event_id").values_list("event_id", flat=True)[0]
        event = markup(client.get(page(order, f"events/{number}/")))
        assert "<dt>Child execution</dt>" in event
        assert link in event
        assert word in event


@pytest.mark.postgres_too
def test_the_banner_leads_to_the_child_that_failed(order: Execution, client: Client) -> None:
    """From the failure of the parent to that of the child in one press."""
    shown = markup(client.get(page(order)))
    told = shown.partition('id="failed-child"')[2].partition("</p>")[0]
    assert f'href="{page(children(order)["Charge"])}"' in told
    fine = markup(client.get(page(children(order)["Pack"])))
    assert "failed-child" not in fine


def test_a_caught_child_is_named_at_the_end_it_led_to(project: Project, client: Client) -> None:
    """The root cause is one press away, and its text is the innermost one."""
    members(project, ada="editor")
    bad = machine_of(project, "ada", fails("CardRefused"), "charge")
    definition = starting(bad, ".sync:2")
    definition["States"]["Child"] |= {"Catch": [{"ErrorEquals": ["States.ALL"], "Next": "No"}]}
    definition["States"]["No"] = {"Type": "Fail", "Error": "OrderFailed"}
    order = goes_on(started(machine_of(project, "ada", definition, "order"), "ada"))
    child = Execution.objects.get(parent=order.pk)
    shown = markup(client.get(page(order)))
    assert f'href="{page(child)}"' in shown.partition('id="failed-child"')[2].partition("</p>")[0]
    assert (
        f'href="{page(order)}replay/?step=Child&visit=1"' in shown
    )  # a redrive would fail at once


def test_a_child_of_a_map_run_names_its_map(
    project: Project, client: Client, worker: Embedded
) -> None:
    """The execution, the state, and the Map Run."""
    del worker
    parent = ended(start(create(project, over(FAILS, ToleratedFailureCount=1)), [1, 3]))
    child = Execution.objects.filter(map_run__parent=parent)[0]
    shown = markup(client.get(reverse("execution", args=[machine_name(child), child.name])))
    assert f'<a id="parent" href="{page(parent)}"' in shown
    assert f'<a href="{page(parent)}?step=Each#workflow">' in shown
    assert "Map Run, item" in shown


def test_a_list_names_the_parent(order: Execution, client: Client) -> None:
    """Where it says who started an execution."""
    shown = markup(client.get("/executions/"))
    row = shown.partition(f'id="x{children(order)["Pack"].pk}"')[2].partition("</tr>")[0]
    assert f'href="{page(order)}"' in row
    row = shown.partition(f'id="x{order.pk}"')[2].partition("</tr>")[0]
    assert f'href="{page(order)}"' in row  # its own
    assert "started-by" not in row


def test_one_that_nothing_started_needs_no_more_queries(
    order: Execution, project: Project, client: Client
) -> None:
    """Only a child looks for its parent, by two queries."""
    alone = drain(start(create(project, PASS, name="alone"), {}))

    def count(execution: Execution) -> int:
        client.get(page(execution))
        with CaptureQueriesContext(connection) as taken:
            client.get(page(execution))
        return len(taken)

    assert count(children(order)["Pack"]) <= count(alone) + 2


def test_the_tree_is_in_the_order_in_which_they_started(order: Execution, client: Client) -> None:
    """What failed is not drawn to the front, and what succeeded is counted, too."""
    answer = client.get(page(order, "tree/"))
    shown = answer.context["family"]
    assert [row.state for row in shown.rows] == ["", "Pack", "Notify", "Charge"]
    assert shown.below.text == "1 failed below"
    assert shown.below.succeeded_text == "2 succeeded"
    words = markup(answer)
    assert "3 descendant executions:" in words
    assert "2 succeeded" in words
    assert "started by<bdi>Notify</bdi>" in words


def test_map_runs_stand_among_the_others(order: Execution, client: Client) -> None:
    """By when they started."""
    first = children(order)["Pack"]
    run = MapRun.objects.create(
        parent=order,
        task=99,
        arn="arn:aws:states:us-east-1:123456789012:mapRun:order/Each:1",
        definition_id=order.definition_id,
        state_machine_arn=f"{order.state_machine_arn}/Each",
        total=1,
        start_ms=order.start_ms + 5_000,
    )
    Execution.objects.filter(pk=first.pk).update(start_ms=order.start_ms + 9_000)
    rows = client.get(page(order, "tree/")).context["family"].rows
    assert [row.run for row in rows].index(run) == 3
    assert rows[4].execution == first


def test_a_failed_step_shows_its_error_before_its_input(order: Execution, client: Client) -> None:
    """An input of many lines would hide why it failed; the banner says how often it was tried."""
    shown = markup(client.get(page(order, "?step=Charge")))
    panel = shown.partition('id="panel"')[2]
    assert panel.index("States.TaskFailed") < panel.index(">Input<")
    assert "All with this error" in shown
    assert "error=States.TaskFailed" in shown


def test_the_banner_says_after_how_many_attempts(project: Project, client: Client) -> None:
    """Of the state that failed."""
    members(project, ada="editor")
    bad = machine_of(project, "ada", fails("Busy"), "bad")
    definition = starting(bad, ".sync:2")
    retry = {"ErrorEquals": ["States.ALL"], "IntervalSeconds": 1, "MaxAttempts": 2}
    definition["States"]["Child"] |= {"Retry": [retry]}
    order = started(machine_of(project, "ada", definition, "order"), "ada")
    for _ in range(3):
        order = goes_on(order)
        Timer.objects.filter(execution=order).update(due_ms=1)
        drain(order)
    shown = markup(client.get(page(order)))
    banner = shown.partition('id="outcome"')[2].partition("</h2>")[0]
    assert "after 3 attempts" in banner
    assert shown.partition('id="step-status"')[2].count("<bdi>bad</bdi>") == 3  # each attempt's


def test_json_in_a_string_is_shown_as_json() -> None:
    """As the causes of nested executions and the bodies of messages are; other texts stay."""
    cause = json.dumps(
        {"Error": "Bad", "Cause": "a cause that is long enough to be a tree of its own"}
    )
    shown = payload_view(json.dumps({"Cause": cause})).html
    assert "1 key" in shown
    assert "2 keys, JSON in a string" in shown
    assert "<bdi>&quot;Bad&quot;</bdi>" in shown
    broken = payload_view(json.dumps({"Cause": cause[:-1]})).html
    assert "JSON in a string" not in broken
    assert "<script>" not in payload_view(json.dumps({"a": json.dumps(["<script>" * 20])})).html


def test_the_graph_marks_what_started_executions(order: Execution, client: Client) -> None:
    """Each box leads to its child; a Task that failed one, and one that did not wait, too."""
    answer: Any = client.get(page(order))
    names = {node.id: node.name for node in answer.context["graph"].painting.graph.nodes}
    signs = {
        names[node]: sign for node, sign in answer.context["graph"].painting.child_signs.items()
    }
    children = {row.arn for row in Execution.objects.filter(parent=order.pk)}
    assert set(signs) == {"Pack", "Notify", "Charge"}
    assert {sign.href.removeprefix("/arn/") for sign in signs.values()} == children
    assert signs["Charge"].label.startswith("Child execution charge: ")
    assert signs["Charge"].label.endswith(", failed")
    assert markup(answer).count('class="child-sign"') == 3
    assert "child-sign" not in markup(client.get(page(order, "?at=4")))
    tick = markup(client.get(page(order, "_delta?after=1")))
    assert tick.count('"child":') == 3


def test_several_children_of_a_task_are_in_the_tree(project: Project, client: Client) -> None:
    """The sign leads to the execution tree; a machine that starts none asks nothing."""
    members(project, ada="editor")
    fine = machine_of(project, "ada", PASS, "pack")
    call = calls(("Pack", SYNC, fine.arn))
    each = {"Type": "Map", "ItemProcessor": call, "End": True}
    each["ItemProcessor"]["States"]["Pack"]["Parameters"] = {"StateMachineArn": fine.arn}
    machine = machine_of(project, "ada", {"StartAt": "Each", "States": {"Each": each}}, "many")
    order = start_execution(machine, input="[1, 2, 3]", actor=Actor("ada"))
    execution = goes_on(drain(order))
    answer: Any = client.get(page(execution))
    (sign,) = answer.context["graph"].painting.child_signs.values()
    assert sign.label == "3 child executions, in the execution tree"
    assert client.get(sign.href).status_code == 200
    with CaptureQueriesContext(connection) as asked:
        with open_trace(alone := drain(start(create(project, PASS, "alone")))) as trace:
            before = len(asked)
            assert child_signs(alone, trace) == {}
        assert len(asked) == before


def test_without_the_tree_the_sign_of_several_leads_to_the_newest(
    order: Execution, settings: Any
) -> None:
    """It says how many there are."""
    Execution.objects.filter(parent=order.pk).update(
        parent_task=Execution.objects.filter(parent=order.pk, parent_task__isnull=False)
        .values_list("parent_task", flat=True)
        .first()
    )
    newest = Execution.objects.filter(parent=order.pk).latest("pk")
    settings.STATEYARD_FEATURES = ()
    with open_trace(order) as trace:
        (sign,) = child_signs(order, trace).values()
    assert sign.href == f"/arn/{newest.arn}"
    assert sign.label.endswith("; the newest of 3 child executions")
    assert sign.words == "3 child executions"
