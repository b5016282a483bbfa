"""A failure group is replayed with the new definition, after a dry run that names its calls."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from console.db.audit import Actor
from console.features.bulk import replays, store
from console.features.bulk.models import BulkItem, BulkJob
from console.models import AuditEntry, Execution, Membership
from console.store.executions import redrive, replay
from console.store.machines import machines
from console.web.execution.repeated_calls import TIMES
from tests.console.store.helpers import PASS, create, drain, function, start
from tests.console.web.helpers import markup, page, text
from tests.features.test_state.test_scenario import answer, hurry

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.test import Client

    from console.models import Project

SEND = {
    "Type": "Task",
    "Resource": "arn:aws:states:::sqs:sendMessage",
    "Parameters": {"QueueUrl": "q", "MessageBody": "m"},
    "End": True,
}
BROKEN: dict[str, Any] = {
    "StartAt": "Look",
    "States": {
        "Look": {**function("look"), "ResultPath": "$.seen", "Next": "Pay"},
        "Pay": {
            **function("pay"),
            "Catch": [{"ErrorEquals": ["States.ALL"], "ResultPath": "$.e", "Next": "Tell"}],
            "End": True,
        },
        "Tell": {**SEND, "Next": "Bad", "ResultPath": None},
        "Bad": {"Type": "Fail", "Error": "Payment"},
    },
}
del BROKEN["States"]["Tell"]["End"]
FIXED: dict[str, Any] = {
    "StartAt": "Look",
    "States": {
        "Look": BROKEN["States"]["Look"],
        "Pay": {"Type": "Pass", "Result": "paid", "ResultPath": "$.paid", "End": True},
    },
}


def failed(project: Project, name: str, data: dict[str, Any] | None = None) -> Execution:
    """Return an execution whose caught error led to a Fail state."""
    machine = project.statemachine_set.filter(name="machine").first() or create(project, BROKEN)
    execution = drain(start(machine, data or {"order": name}, name))
    answer(execution, "Look", "seen")
    answer(execution, "Pay", ("Declined", "no money"))
    return answer(execution, "Tell", {})


def fix(execution: Execution, definition: dict[str, Any]) -> None:
    """Change the definition of its state machine."""
    machine = execution.state_machine
    assert machine is not None
    machines.update_machine(machine, definition=json.dumps(definition))


def finish(job: BulkJob) -> None:
    """Work a job off in this thread."""
    while store.work_on_job(job.pk):
        pass


def shown_text(response: Any) -> str:
    """Return a page with an x for the sign of multiplication."""
    return markup(response).replace(TIMES, "x")


def begin(client: Client) -> BulkJob:
    """Send the form of the dry run of all failures."""
    shown = client.get("/executions/bulk/?action=replay&all=1&status=FAILED")
    client.post("/executions/bulk/", {"action": "replay", "numbers": shown.context["numbers"]})
    return BulkJob.objects.latest("pk")


@pytest.mark.postgres_too
def test_a_failure_group_is_replayed_once_the_definition_has_changed(
    project: Project, client: Client
) -> None:
    """The dry run names states and calls, the job links each replay to its origin."""
    executions = [failed(project, f"order-{number}") for number in range(3)]
    assert "action=replay" not in text(client.get("/failures/"))
    fix(executions[0], BROKEN | {"Comment": "new"})
    shown = text(client.get("/failures/"))
    address = shown.split('href="/executions/bulk/?action=replay')[1].split('"')[0]
    assert "Replay all 3" in markup(client.get("/failures/"))
    dry = client.get(f"/executions/bulk/?action=replay{address}".replace("&amp;", "&"))
    shown = shown_text(dry)
    assert "Would call again: lambda:pay x3, sqs:sendMessage x3" in shown
    assert shown.count("lambda:pay x1, sqs:sendMessage x1") == 3
    assert not BulkJob.objects.exists()
    fix(executions[0], FIXED)
    job = begin(client)
    finish(job)
    items = BulkItem.objects.filter(job=job)
    assert [item.status for item in items] == ["done"] * 3
    for item in items:
        replayed = drain(Execution.objects.get(arn=item.result))
        origin = replay.origin_of(replayed)
        assert origin is not None
        assert (origin.arn, origin.state) == (item.arn, "Pay")
        assert replayed.status == "SUCCEEDED"
        assert json.loads(replayed.output or "") == {
            "order": origin.name,
            "seen": "seen",
            "paid": "paid",
        }
    acts = AuditEntry.objects.filter(action="StartExecution", request_id=f"bulk/{job.pk}")
    assert acts.count() == 3
    assert AuditEntry.objects.filter(action="BulkReplay", target=f"bulk/{job.pk}").count() == 1
    shown = markup(client.get(f"/executions/bulk/{job.pk}/"))
    assert "3 replayed: 3 succeeded" in shown


def test_a_dry_run_says_why_an_execution_cannot_be_replayed(
    project: Project, client: Client
) -> None:
    """By its row or by its history; the job refuses it for the same reason."""
    lost = failed(project, "lost")
    fix(lost, {"StartAt": "Other", "States": {"Other": {"Type": "Succeed"}}})
    only = {"StartAt": "F", "States": {"F": {"Type": "Fail", "Error": "Oops"}}}
    ends = drain(start(create(project, only, "ends"), name="ends"))
    fix(ends, only | {"Comment": "new"})
    same = drain(start(create(project, only, "same"), name="same"))
    good = drain(start(create(project, PASS, "good"), name="good"))
    shown = client.get("/executions/bulk/?action=replay&all=1")
    reasons = {each.name: reason for each, reason in shown.context["excluded"]}
    assert reasons == {
        "lost": "The new definition has no state Pay outside of Parallel and Map",
        "ends": "Only the Fail state F would run again",
        "same": "It ran with the current definition of its state machine",
        "good": "Only executions that failed, timed out or were aborted are replayed",
    }
    assert "None of the selected executions can be replayed" in markup(shown)
    numbers = shown.context["numbers"]
    client.post("/executions/bulk/", {"action": "replay", "numbers": numbers})
    job = BulkJob.objects.get()
    finish(job)
    words = dict(BulkItem.objects.filter(job=job).values_list("number", "words"))
    assert words == {each.pk: reasons[each.name] for each in (lost, ends, same, good)}
    assert Execution.objects.count() == 4


@pytest.mark.postgres_too
def test_an_execution_is_replayed_once(project: Project, client: Client) -> None:
    """A job that has done an item, or that is paused before it, starts nothing."""
    execution = failed(project, "once")
    fix(execution, FIXED)
    job = begin(client)
    client.post(f"/executions/bulk/{job.pk}/", {"act": "pause"})
    finish(job)
    assert Execution.objects.count() == 1
    client.post(f"/executions/bulk/{job.pk}/", {"act": "resume"})
    finish(job)
    BulkJob.objects.update(status="RUNNING")  # as if its end had not been noted
    finish(job)
    assert Execution.objects.count() == 2


def test_a_replay_takes_the_right_to_start(
    project: Project, client: Client, signed_in: Callable[[str], Client], django_user_model: Any
) -> None:
    """A viewer sees no offer and no dry run; a job ends with the right of its actor."""
    execution = failed(project, "mine")
    fix(execution, FIXED)
    viewer = signed_in("viewer")
    assert "action=replay" not in text(viewer.get("/failures/"))
    assert viewer.get("/executions/bulk/?action=replay&all=1").status_code == 403
    sent = {"action": "replay", "numbers": str(execution.pk)}
    assert viewer.post("/executions/bulk/", sent).status_code == 403
    user = django_user_model.objects.create_user("leaver")
    member = Membership.objects.create(project=project, user=user, role="operator")
    planned = store.plan_job(project, "replay", [execution.pk])
    job = store.create_job(planned, project, Actor("leaver"))
    member.delete()
    finish(job)
    assert BulkItem.objects.get(job=job).error == "AccessDeniedException"


@pytest.mark.postgres_too
def test_a_replay_begins_with_masked_values_and_shows_none(
    project: Project, client: Client
) -> None:
    """The new execution has the true input; the dry run has no payload."""
    project.masked = "$.card"
    project.save()
    execution = failed(project, "secret", {"card": "4111-1111", "order": "secret"})
    fix(execution, FIXED)
    assert "4111" not in text(client.get("/executions/bulk/?action=replay&all=1"))
    job = begin(client)
    finish(job)
    replayed = Execution.objects.get(arn=BulkItem.objects.get(job=job).result)
    assert json.loads(replayed.input)["card"] == "4111-1111"
    assert "4111" not in text(client.get(f"/executions/bulk/{job.pk}/"))


def test_a_dry_run_examines_a_bounded_number(
    project: Project, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The newest ones; the page says so."""
    executions = [failed(project, f"n{number}") for number in range(3)]
    fix(executions[0], FIXED)
    monkeypatch.setattr(replays, "MOST_PLANNED", 2)
    shown = markup(client.get("/executions/bulk/?action=replay&all=1"))
    assert "Counted for the newest 2 executions" in shown
    assert shown.count("Not examined") == 1


def test_a_page_of_failures_takes_as_many_queries_for_many(
    project: Project, client: Client
) -> None:
    """How many of a group can be replayed is one query."""
    counts = []
    for size in (1, 4):
        for number in range(size):
            execution = failed(project, f"q{size}-{number}")
        fix(execution, BROKEN | {"Comment": f"new {size}"})
        client.get("/failures/")
        with CaptureQueriesContext(connection) as taken:
            client.get("/failures/")
        counts.append(len(taken))
    assert counts[0] == counts[1]


def test_the_pages_of_one_replay_and_redrive_name_the_calls(
    project: Project, client: Client
) -> None:
    """By the definition that runs; a redrive calls only what did not succeed."""
    execution = failed(project, "one")
    replays_from = page(execution, "replay/?step=Look")
    calls = "Would call again:<b>lambda:look x1, lambda:pay x1, sqs:sendMessage x1</b>"
    assert calls in shown_text(client.get(replays_from))
    fix(execution, FIXED)
    shown = shown_text(client.get(replays_from))
    assert "Would call again:<b>lambda:look x1</b>" in shown
    assert "With the definition of the execution: lambda:look x1, lambda:pay x1" in shown
    assert "so its current definition is preselected" in shown
    shown = shown_text(client.get(page(execution, "replay/?step=Pay")))
    assert "Would call nothing again" in shown
    assert 'id="calls-again"' not in text(client.get(page(execution, "redrive/")))
    open_call = drain(start(create(project, {"StartAt": "A", "States": {"A": SEND}}, "sends")))
    answer(open_call, "A", ("Bad", "broke"))
    shown = shown_text(client.get(page(open_call, "redrive/")))
    assert "Would call again:<b>sqs:sendMessage x1</b>" in shown


def test_calls_count_once_a_visit(project: Project, client: Client) -> None:
    """Retries are not counted; each iteration of a Map is."""
    retry = [{"ErrorEquals": ["Busy"], "IntervalSeconds": 1, "MaxAttempts": 3}]
    item = {"StartAt": "Do", "States": {"Do": {**function("do"), "End": True, "Retry": retry}}}
    each = {"Type": "Map", "ItemProcessor": item, "End": True}
    machine = create(project, {"StartAt": "Each", "States": {"Each": each}})
    execution = drain(start(machine, [1, 2]))
    answer(execution, "Do", "done")
    answer(execution, "Do", ("Busy", "later"))
    hurry(execution)
    execution = answer(execution, "Do", ("Bad", "broke"))
    shown = shown_text(client.get(page(execution, "replay/?step=Each")))
    assert "Would call again:<b>lambda:do x2</b>" in shown
    assert redrive.api_refusal(execution) == ""
    shown = shown_text(client.get(page(execution, "redrive/")))
    assert "Would call again:<b>lambda:do x1</b>" in shown
