"""Summaries are stored when executions start and end, and shown where executions are listed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from console.errors import ServiceError
from console.features.notifications import notice_text
from console.features.summary import shown, store
from console.features.summary.expression import Evaluated
from console.features.summary.models import ExecutionSummary
from console.models import Execution, Tag
from console.store.executions.stop import stop_execution
from console.store.machines import tags
from tests.console.store.helpers import PASS, ROLE, WAIT, create, drain, start
from tests.console.web.helpers import markup, page

if TYPE_CHECKING:
    from django.test import Client

    from console.models import Project, StateMachine

SUMMARY = "stateyard:summary"
ORDER = "'Order ' & input.order & ($exists(output) ? ' done' : ' open')"


@pytest.fixture(autouse=True)
def _progress() -> None:
    """Look back as a worker that has just started."""
    store._progress.since_ms = 0  # as in a new leader


def tagged(project: Project, expression: str, definition: Any = PASS) -> StateMachine:
    """Return a state machine with the tag."""
    machine = create(project, definition)
    tags.put_tags(machine.arn, {SUMMARY: expression})
    return machine


def stored() -> dict[str, str]:
    """Return name of an execution -> its stored summary."""
    return dict(ExecutionSummary.objects.values_list("execution__name", "text"))


@pytest.mark.postgres_too
def test_a_summary_follows_the_execution(project: Project) -> None:
    """One at its start, one at its end, and again at the end of a redrive."""
    machine = tagged(project, ORDER, WAIT)
    running = start(machine, {"order": 1}, "a")
    store.write_summaries()
    assert stored() == {"a": "Order 1 open"}
    before = list(ExecutionSummary.objects.values())
    store.write_summaries()
    assert list(ExecutionSummary.objects.values()) == before
    Tag.objects.update(value="'Stopped ' & input.order")
    stop_execution(running)
    store.write_summaries()
    assert stored() == {"a": "Stopped 1"}
    row = ExecutionSummary.objects.get()
    assert row.stop_ms == Execution.objects.get().stop_ms


@pytest.mark.postgres_too
def test_an_execution_that_ends_at_once_has_one_summary(project: Project) -> None:
    """With its output; those of other machines have none."""
    drain(start(tagged(project, ORDER), {"order": 2}, "b"))
    drain(start(create(project, PASS, "other"), {"order": 3}, "c"))
    store.write_summaries()
    assert stored() == {"b": "Order 2 done"}


def test_more_than_a_batch_is_written(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """In one run."""
    monkeypatch.setattr(store, "BATCH", 2)
    machine = tagged(project, "input.order")
    for number in range(5):
        drain(start(machine, {"order": number}, f"n{number}"))
    store.write_summaries()
    assert stored() == {f"n{number}": str(number) for number in range(5)}


def test_lists_pages_and_compare_show_it(project: Project, client: Client) -> None:
    """And evaluate nothing; an execution that has just ended is evaluated on its page."""
    machine = tagged(project, ORDER, WAIT)
    run, two = start(machine, {"order": 7}, "one"), start(machine, {"order": 8}, "two")
    store.write_summaries()
    for address in ("/executions/", "/machines/machine/"):
        assert "Order 7 open" in markup(client.get(address))
    assert "<dt>Summary</dt>" in markup(client.get(page(run)))
    compared = markup(client.get(f"/compare/?a={run.arn}&b={two.arn}"))
    assert "Order 7 open" in compared
    assert "Order 8 open" in compared
    Tag.objects.update(value="'Ended ' & input.order")
    stop_execution(run)
    assert "Ended 7" in markup(client.get(page(run)))
    Tag.objects.all().delete()
    assert "Order 8 open" in markup(client.get("/executions/"))


def test_a_list_takes_one_query_for_all_summaries(project: Project, client: Client) -> None:
    """However many rows it has."""
    machine = tagged(project, "input.order")
    counts = []
    for size in (1, 9):
        for number in range(size):
            drain(start(machine, {"order": number}))
        store.write_summaries()
        client.get("/executions/")
        with CaptureQueriesContext(connection) as taken:
            client.get("/executions/")
        counts.append(sum("executionsummary" in each["sql"] for each in taken))
    assert counts == [1, 1]


def test_a_summary_has_no_masked_value(project: Project, client: Client) -> None:
    """Under its place or elsewhere, also if the place is masked later."""
    project.masked = "$.card"
    project.save()
    data = {"card": "4111-1111", "again": "paid by 4111-1111", "pin": 12, "order": 5}
    machine = tagged(
        project, "input.card & ' ' & input.again & ' ' & input.pin & ' ' & input.order"
    )
    run = drain(start(machine, data, "masked"))
    store.write_summaries()
    (line,) = stored().values()
    assert line == "(masked) paid by (masked) 12 5"
    assert line in markup(client.get("/executions/"))
    assert "4111" not in shown.fresh_summary(Execution.objects.get(pk=run.pk))
    project.masked = "$.card\n$.pin"
    project.save()
    assert line not in markup(client.get("/executions/"))
    assert line not in markup(client.get("/machines/machine/"))


def test_a_page_refuses_a_tag_that_is_no_expression(project: Project, client: Client) -> None:
    """The API takes it, as AWS does, and the page of the machine has a hint."""
    machine = create(project, PASS)
    sent = {"act": "tag", "key": SUMMARY, "value": "input.order +"}
    answer = client.post("/machines/machine/settings/", sent)
    assert answer.status_code == 422
    assert "stateyard:summary is not a JSONata expression" in markup(answer, 422)
    assert not Tag.objects.exists()
    client.post("/machines/machine/settings/", sent | {"value": "'Order ' & input.order"})
    assert Tag.objects.get().value == "'Order ' & input.order"
    tags.put_tags(machine.arn, {SUMMARY: "input.order +"})
    assert "is not a JSONata expression" in markup(client.get("/machines/machine/"))
    new = {"text": json.dumps(PASS), "role": ROLE, "name": "new", "tags": f"{SUMMARY}=a +"}
    assert client.post("/machines/new/", new).status_code == 422
    with pytest.raises(ServiceError, match="Tags may only contain"):
        tags.put_tags(machine.arn, {"other": "'Order ' & input.order"})


def test_an_error_shows_as_nothing_with_a_hint(project: Project, client: Client) -> None:
    """The execution is not touched by it."""
    run = drain(start(tagged(project, "$number(input.who)"), {"who": "Ada"}, "odd"))
    store.write_summaries()
    assert stored() == {"odd": ""}
    assert run.status == "SUCCEEDED"
    hint = markup(client.get("/machines/machine/"))
    assert "stateyard:summary has no value for odd: " in hint
    assert "<dt>Summary</dt>" not in markup(client.get(page(run)))


@pytest.mark.postgres_too
def test_a_slow_expression_is_given_up_for_the_others(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker goes on after the first that fails slowly."""
    calls = []
    machine = tagged(project, "input.order")
    for number in range(3):
        drain(start(machine, {"order": number}))
    monkeypatch.setattr(store, "_SLOW_S", -1.0)

    def fail(*arguments: Any) -> Evaluated:
        calls.append(arguments)
        return Evaluated(problem="too slow")

    monkeypatch.setattr(store, "evaluate", fail)
    store.write_summaries()
    assert len(calls) == 1
    assert set(ExecutionSummary.objects.values_list("problem", flat=True)) == {"too slow"}


def test_a_summary_goes_with_its_execution(project: Project) -> None:
    """Also one that is evaluated while its execution is deleted."""
    run = drain(start(tagged(project, "input.order"), {"order": 1}))
    store.write_summaries()
    assert ExecutionSummary.objects.exists()
    Execution.objects.filter(pk=run.pk).delete()
    assert not ExecutionSummary.objects.exists()
    store.write_all([run], {run.state_machine_id or 0: "input.order"})
    assert not ExecutionSummary.objects.exists()


def test_a_mail_and_a_chat_have_it(project: Project) -> None:
    """Beside the name of the execution."""
    machine = tagged(project, ORDER)
    run = drain(start(machine, {"order": 4}, "mailed"))
    event = json.dumps(
        {
            "source": "aws.states",
            "detail-type": "Step Functions Execution Status Change",
            "detail": {"executionArn": run.arn, "name": "mailed", "status": "SUCCEEDED"},
        }
    )
    facts = {notice_text.SUMMARY: shown.fresh_summary(run)}
    assert "Summary: Order 4 done" in notice_text.mail_text(event, event, facts)
    assert "Summary: Order 4 done" in notice_text.slack_message(event, event, facts)
