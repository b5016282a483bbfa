"""Approvals: answered in the list of tasks, and by a link that needs no account."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
from django.test import Client

from console.db import clock
from console.features.approvals import store as approval_links
from console.models import AuditEntry, Execution, Membership, Project, TaskRow
from console.store.executions.stop import stop_execution
from console.web.core.formatting import HOUR
from tests.console.store.helpers import ACTIVITY, REGION, WORK, create, drain, one, start
from tests.console.web.helpers import MARKUP, markup, page, text
from tests.features.tasks.test_tasks import form, waiting

if TYPE_CHECKING:
    from collections.abc import Callable

    SignIn = Callable[[str], Client]

APPROVAL = one("Review", Type="Task", Resource=ACTIVITY)


def key_of(execution: Execution) -> str:
    """Return what the list's form calls the open task of an execution."""
    row = TaskRow.objects.exclude(status="closed").get(execution=execution)
    return f"{execution.pk}-{row.task}"


def ended(execution: Execution) -> Execution:
    """Return an execution as it is after what was answered."""
    return drain(Execution.objects.get(pk=execution.pk))


# -- the list --------------------------------------------------------------------------------------


@pytest.mark.parametrize("act", ["approve", "ask-reject", "reject"])
def test_a_late_answer_in_the_list_says_who_was_first(
    project: Project, signed_in: SignIn, act: str
) -> None:
    """Two people have the list open: the second is told what became of the task."""
    execution = waiting(project, APPROVAL)
    first, second = signed_in("operator"), signed_in("editor")
    sent = {"task": key_of(execution), "comment": ""}
    first.post("/tasks/", {**sent, "act": "approve"})
    shown = text(second.post("/tasks/", {**sent, "act": act}, follow=True))
    assert "x: operator approved this task." in shown
    assert "Timed Out" not in shown
    assert ended(execution).status == "SUCCEEDED"


@pytest.mark.postgres_too
def test_the_list_follows_what_others_do(project: Project, signed_in: SignIn) -> None:
    """Its poll names the tasks that have ended, with who answered, and counts the new ones."""
    executions = [waiting(project, APPROVAL, name) for name in ("a", "b", "c")]
    keys = [key_of(execution) for execution in executions]
    operator, viewer = signed_in("operator"), signed_in("viewer")
    listed = operator.get("/tasks/")
    ask = {"listed_ms": listed.context["now"], "shown": ",".join(keys), "seen": "3-0"}
    assert operator.get("/tasks/_changes", ask).status_code == 204
    operator.post("/tasks/", {"task": keys[0], "act": "approve", "comment": ""})
    stop_execution(executions[1])
    drain(Execution.objects.get(pk=executions[1].pk))
    changes = operator.get("/tasks/_changes", ask | {"kind": "activity", "columns": "n"})
    shown = text(changes)
    assert "1 open task<" in shown
    assert f'id="task-{keys[0]}-answer"' in shown
    assert "operator approved this task" in shown
    assert f'id="task-{keys[1]}-answer"' in shown
    assert "This task has ended" in shown
    assert f"task-{keys[2]}" not in shown
    assert "new task" not in shown
    waiting(project, APPROVAL, "d")
    later = operator.get("/tasks/_changes", ask | {"shown": keys[2], "kind": "activity"})
    assert "Show 1 new task" in markup(later)
    assert 'href="/tasks/?kind=activity"' in text(later)
    assert "answer" not in text(viewer.get("/tasks/_changes", ask))
    unread = Client().get("/tasks/_changes", ask)
    assert unread.status_code == 302


@pytest.mark.postgres_too
def test_the_poll_of_the_list_tells_nothing_of_others(project: Project, signed_in: SignIn) -> None:
    """Keys of tasks of another project are no tasks of this one."""
    execution = waiting(project, APPROVAL)
    key = key_of(execution)
    other = Project.objects.create(name="other", account_id="222222222222")
    Execution.objects.filter(pk=execution.pk).update(project=other)
    TaskRow.objects.update(status="closed")
    reader = signed_in("operator")
    assert key not in text(reader.get("/tasks/_changes", {"shown": key, "listed_ms": "0"}))


def test_columns_come_from_the_input(project: Project, client: Client) -> None:
    """By paths, in their order; what is not there or hidden is not shown."""
    from console.store.tasks import activities

    activities.create_activity(project, REGION, "work")
    machine = create(project, WORK)
    data = {"order": {"id": 4711, "note": f"urgent {MARKUP}"}, "items": [{"sku": "A 1"}]}
    drain(start(machine, data, "x"))
    columns = "order.id, $.order.note, input.items[0].sku, order.missing"
    response = client.get("/tasks/", {"columns": columns})
    [values] = response.context["values"].values()
    assert values == ["4711", f"urgent {MARKUP}", "A 1", ""]
    assert MARKUP not in response.content.decode()
    assert f'value="{columns}"' in text(response)
    Project.objects.filter(pk=project.pk).update(masked="$.order.note")
    response = client.get("/tasks/", {"columns": columns})
    assert "urgent" not in text(response)
    for bad, words in (("a b", "is not a path such as"), ("a,b,c,d,e,f", "Select up to 5")):
        assert words in text(client.get("/tasks/", {"columns": bad}), 422)


def test_the_list_says_what_is_asked_without_chosen_columns(
    project: Project, client: Client
) -> None:
    """The first short values, those at the top first; nothing that is hidden, and no token."""
    from console.store.tasks import activities

    activities.create_activity(project, REGION, "work")
    data = {
        "order": {"id": 4711, "note": f"urgent {MARKUP}"},
        "items": [{"sku": "A 1"}],
        "amount": 12.5,
        "nothing": None,
        "rush": True,
        "who": "Ada",
        "reason": "Arrived broken",
        "shop": "north",
    }
    machine = create(project, WORK)
    execution = drain(start(machine, data, "x"))
    [summary] = client.get("/tasks/").context["summaries"].values()
    assert [(field.name, field.value) for field in summary.fields] == [
        *(("amount", "12.5"), ("rush", "true"), ("who", "Ada")),
        *(("reason", "Arrived broken"), ("shop", "north")),
    ]
    assert summary.left_out == 2
    shown = markup(client.get("/tasks/"))
    assert "<dt><bdi>amount</bdi></dt><dd><bdi>12.5</bdi></dd>" in shown
    assert ">2 more<" in shown
    assert '<a href="/machines/machine/"><bdi>machine</bdi></a>' in shown
    Project.objects.filter(pk=project.pk).update(masked="$.who")
    assert "Ada" not in text(client.get("/tasks/"))
    assert "Ada" not in text(client.get("/tasks/", {"columns": "who"}))
    Project.objects.filter(pk=project.pk).update(masked="")
    Execution.objects.filter(pk=execution.pk).update(status="ABORTED")
    TaskRow.objects.filter(execution=execution).update(status="closed")
    sent = {"QueueUrl": "https://q", "MessageBody": {"token.$": "$$.Task.Token", "refund.$": "$"}}
    callback = one(
        "Approve",
        Type="Task",
        Resource="arn:aws:states:::sqs:sendMessage.waitForTaskToken",
        Parameters=sent,
    )
    drain(start(create(project, callback, "refunds"), {"id": 7, "to": MARKUP}, "y"))
    response = client.get("/tasks/")
    [summary] = response.context["summaries"].values()
    assert [(field.name, field.value) for field in summary.fields] == [
        *(("refund.id", "7"), ("refund.to", MARKUP)),
    ]
    assert MARKUP not in response.content.decode()


@pytest.mark.parametrize(
    ("payload", "shown"),
    [
        ('"just a text"', [("", "just a text")]),
        ("[1, 2]", [("", "[1, 2]")]),
        ("{}", []),
        ("[" * 5000, []),
    ],
)
def test_an_input_that_is_no_object(payload: str, shown: list[tuple[str, str]]) -> None:
    """Is shown whole where it is short; what cannot be read is left out."""
    from console.features.tasks import views as task_views

    summary = task_views._summary(payload, is_call=False)
    assert [(field.name, field.value) for field in summary.fields] == shown


@pytest.mark.parametrize("act", ["approve", "reject"])
def test_a_task_is_answered_in_the_list(project: Project, client: Client, act: str) -> None:
    """Back to the same list; the output or the error names who did so; the audit has it."""
    execution = waiting(project)
    sent = {"task": key_of(execution), "act": act, "comment": "as agreed"}
    address = "/tasks/?kind=activity&columns=n"
    response = client.post(address, sent)
    assert (response.status_code, response["Location"]) == (302, address)
    execution = ended(execution)
    if act == "approve":
        assert json.loads(execution.output or "") == {
            "approved": True,
            "by": "editor",
            "comment": "as agreed",
        }
    else:
        assert (execution.error, execution.cause) == ("Rejected", "Rejected by editor: as agreed")
    action = {"approve": "SendTaskSuccess", "reject": "SendTaskFailure"}[act]
    assert AuditEntry.objects.filter(action=action, actor="editor").count() == 1


def test_reject_in_the_list_asks_once_more(project: Project, client: Client) -> None:
    """The first press changes nothing; the second rejects, and its banner links the execution."""
    execution = waiting(project, APPROVAL)
    listed = text(client.get("/tasks/"))
    assert 'name="act" value="reject"' not in listed
    sent = {"task": key_of(execution), "act": "ask-reject", "comment": "too <b>dear"}
    question = text(client.post("/tasks/?kind=activity", sent))
    assert TaskRow.objects.filter(execution=execution).exists()
    assert 'action="/tasks/?kind=activity"' in question
    assert 'value="too <b>dear"' in question
    assert 'name="act" value="reject"' in question
    answer = text(client.post("/tasks/", {**sent, "act": "reject"}, follow=True))
    assert (
        f'The task of <a href="/arn/{execution.arn}">{execution.name}</a> was rejected.' in answer
    )
    assert ended(execution).error == "Rejected"


def test_of_two_people_the_first_answer_counts(project: Project, client: Client) -> None:
    """The second one is told, and changes nothing."""
    execution = waiting(project)
    sent = {"task": key_of(execution), "act": "approve"}
    client.post("/tasks/", sent)
    shown = text(client.post("/tasks/", {**sent, "act": "reject"}, follow=True))
    assert "x: editor approved this task. Your answer changed nothing." in shown
    assert ended(execution).status == "SUCCEEDED"


@pytest.mark.postgres_too
def test_a_viewer_and_strangers_answer_nothing(project: Project, signed_in: SignIn) -> None:
    """No button, no answer; no task of another project either."""
    execution = waiting(project, APPROVAL)
    sent = {"task": key_of(execution), "act": "approve"}
    viewer = signed_in("viewer")
    assert 'value="approve"' not in text(viewer.get("/tasks/"))
    assert viewer.post("/tasks/", sent).status_code == 403
    operator = signed_in("operator")
    assert 'value="approve"' in text(operator.get("/tasks/"))
    other = Project.objects.create(name="other", account_id="999999999999")
    Membership.objects.all().update(project=other)
    assert operator.post("/tasks/", sent).status_code == 404
    for odd in ("", "x-y", "-", f"{execution.pk}-99999999999999999999"):
        assert operator.post("/tasks/", {**sent, "task": odd}).status_code == 404
    assert ended(execution).status == "RUNNING"


def test_what_a_worker_has_taken_is_answered_on_its_page(project: Project, client: Client) -> None:
    """Else a press in the list would take it from the worker."""
    from console.store.tasks import claim

    execution = waiting(project, APPROVAL)
    assert 'value="approve"' in text(client.get("/tasks/"))
    row = TaskRow.objects.get(execution=execution)
    assert claim.take_activity_task(row.resource, "w1") is not None
    assert 'value="approve"' not in text(client.get("/tasks/"))
    opened = text(client.get(form(execution)))
    assert 'value="approve"' in opened, "its name asks a person, whoever has taken it"
    assert 'value="reject"' in opened


@pytest.mark.parametrize("place", ["page", "link"])
def test_the_page_and_the_link_ask_before_they_reject(
    project: Project, client: Client, place: str
) -> None:
    """Without a script: the button that rejects stands in the form, folded under another one."""
    execution = waiting(project, APPROVAL)
    address = form(execution) if place == "page" else make_link(client, execution)
    shown = markup(client.get(address))
    before, _, after = shown.partition('<details class="reject">')
    question, _, rest = after.partition("</details>")
    assert 'value="approve"' in before
    assert 'value="reject"' not in before + rest
    assert question.count('value="reject"') == 1
    assert "You cannot undo this" in question
    assert before.rfind("<form") > before.rfind("</form>")


@pytest.mark.parametrize("act", ["approve", "reject"])
def test_the_page_of_an_approval_answers_as_the_list_does(
    project: Project, client: Client, act: str
) -> None:
    """The same output, the same error; the comment comes with it."""
    execution = waiting(project, APPROVAL)
    client.post(form(execution), {"act": act, "comment": "as agreed"})
    execution = ended(execution)
    if act == "approve":
        expected = {"approved": True, "by": "editor", "comment": "as agreed"}
        assert json.loads(execution.output or "") == expected
    else:
        assert (execution.error, execution.cause) == ("Rejected", "Rejected by editor: as agreed")


@pytest.mark.postgres_too
@pytest.mark.parametrize("act", ["approve", "reject"])
def test_an_answer_of_a_person_is_named_so(project: Project, client: Client, act: str) -> None:
    """In the audit and on the execution's page; what a program sends keeps the API's words."""
    execution = waiting(project, APPROVAL)
    client.post(form(execution), {"act": act})
    word = {"approve": "approved", "reject": "rejected"}[act]
    entry = AuditEntry.objects.get(action__startswith="SendTask")
    shown = markup(client.get("/audit/"))
    rows = [row for row in shown.split("<tr") if f'title="{entry.action}"' in row]
    assert len(rows) == 1
    assert f">{act.capitalize()} task<" in rows[0]
    assert f", {word}" not in rows[0]
    assert f"<td>Task {word}</td>" in markup(client.get(page(execution)))
    AuditEntry.objects.filter(pk=entry.pk).update(reason="Approve, task 5")
    assert f">{act.capitalize()} task<" not in markup(client.get("/audit/"))


@pytest.mark.postgres_too
def test_the_page_of_a_task_says_how_much_time_is_left(project: Project, client: Client) -> None:
    """As the list does, beside the moment."""
    execution = waiting(project, APPROVAL)
    soon = clock.now_ms() + HOUR
    TaskRow.objects.filter(execution=execution).update(timeout_due_ms=soon, clock="startToClose")
    shown = markup(client.get(form(execution)))
    assert re.search(rf'data-until="{soon}">[^<]+</span>left', shown)


# -- links -----------------------------------------------------------------------------------------


def make_link(client: Client, execution: Execution, **fields: str) -> str:
    """Make a link as an editor does, and return its path."""
    shown = text(client.post(f"{form(execution)}link/", fields))
    return urlsplit(shown.split('id="approval-link">')[1].split("</pre>")[0]).path


def test_a_refused_link_keeps_what_was_typed(project: Project, client: Client) -> None:
    """Its form is open, with the question, the choice and the time."""
    address = f"{form(waiting(project))}link/"
    sent = {"note": "n" * 501, "show": "1", "hours": "168"}
    shown = text(client.post(address, sent), 422)
    assert '<details id="approver-link" open>' in shown
    assert f"{'n' * 501}</textarea>" in shown
    assert re.search(r'name="show"[^>]*\bchecked>', shown)
    assert '<option value="168" selected>' in shown


def test_a_link_lets_somebody_without_an_account_answer(project: Project, client: Client) -> None:
    """Opening changes nothing, a POST answers; the link is spent; the audit names both."""
    execution = waiting(project)
    link = make_link(client, execution, note="May it ship?", show="1", hours="1")
    guest = Client(enforce_csrf_checks=True)
    for _ in range(3):
        assert guest.head(link).status_code == 200
        opened = guest.get(link)
    shown = text(opened)
    assert "May it ship?" in shown
    assert '"n": 1' in shown
    assert opened["Cache-Control"] == "no-store"
    assert TaskRow.objects.get(execution=execution).status == "scheduled"
    sent = {"act": "approve", "name": "Grace", "comment": "yes"}
    assert guest.post(link, sent).status_code == 403  # no CSRF token
    sent["csrfmiddlewaretoken"] = shown.split('name="csrfmiddlewaretoken" value="')[1].split('"')[0]
    assert "Your name must have" in text(guest.post(link, {**sent, "name": " "}), 422)
    assert "Choose Approve" in text(guest.post(link, {**sent, "act": "x"}), 422)
    answered = text(guest.post(link, sent))
    for words in ("You approved it.", "Grace", "yes", execution.name):
        assert words in answered
    assert json.loads(ended(execution).output or "") == {
        "approved": True,
        "by": "Grace, by a link of editor",
        "comment": "yes",
    }
    for again in (guest.get(link), guest.post(link, {**sent, "act": "reject"})):
        assert "has been answered" in text(again, 410)
    entries = AuditEntry.objects.filter(target=execution.arn).order_by("pk")
    assert list(entries.values_list("action", "actor")) == [
        ("CreateApprovalLink", "editor"),
        ("SendTaskSuccess", "Grace, by a link of editor"),
    ]


def test_a_link_shows_no_more_than_its_maker_chose(project: Project, client: Client) -> None:
    """Without the choice no input; hidden values and the task's token never."""
    execution = waiting(project)
    assert '"n"' not in text(Client().get(make_link(client, execution)))
    Project.objects.filter(pk=project.pk).update(masked="$.n")
    shown = text(Client().get(make_link(client, execution, show="1")))
    assert '"n": "(masked)"' in shown
    shown = Client().get(make_link(client, execution, note=MARKUP)).content.decode()
    assert MARKUP not in shown


def test_a_link_ends(project: Project, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its time, with the rights of its maker, with its task; a changed one is none."""
    execution = waiting(project)
    link = make_link(client, execution, hours="1")
    sent = {"act": "approve", "name": "Grace"}
    bent = link[:-3] + ("AA/" if not link.endswith("AA/") else "BB/")
    assert "is not valid" in text(Client().post(bent, sent), 410)
    assert "Ask the sender for a new link" in text(Client().get(bent), 410)
    later = clock.now_ms() + 2 * HOUR
    with monkeypatch.context() as patch:
        patch.setattr(clock, "now_ms", lambda: later)
        assert "has expired" in text(Client().post(link, sent), 410)
    Membership.objects.filter(user__username="editor").update(role="operator")
    assert "is no longer valid" in text(Client().post(link, sent), 410)
    Membership.objects.filter(user__username="editor").update(role="editor")
    assert Client().get(link).status_code == 200
    stop_execution(execution)
    assert "has been answered or has ended" in text(Client().post(link, sent), 410)


@pytest.mark.postgres_too
def test_a_link_of_a_removed_person_stays_closed(project: Project, client: Client) -> None:
    """Also when somebody of that name is added again, who starts from nothing."""
    execution = waiting(project)
    link = make_link(client, execution)
    member = Membership.objects.get(user__username="editor", project=project)
    Membership.objects.filter(pk=member.pk).delete()
    Membership.objects.create(project=project, user=member.user, role="editor")
    sent = {"act": "approve", "name": "Grace"}
    assert "is no longer valid" in text(Client().post(link, sent), 410)


def test_only_an_editor_makes_links(project: Project, signed_in: SignIn) -> None:
    """An operator answers tasks, and opens no door to others."""
    execution = waiting(project)
    operator = signed_in("operator")
    assert 'id="make-link"' not in text(operator.get(form(execution)))
    assert operator.post(f"{form(execution)}link/").status_code == 403
    assert 'id="make-link"' in text(signed_in("editor").get(form(execution)))


def test_a_link_answers_its_own_task_only(project: Project, client: Client) -> None:
    """Another execution's task, of the same machine, stays open."""
    first, second = waiting(project), waiting(project, name="y")
    link = make_link(client, first)
    with pytest.raises(approval_links.ApprovalClosed):
        approval_links.open_approval("x" + link.split("/")[2])
    Client().post(link, {"act": "reject", "name": "Grace"})
    assert (ended(first).error, ended(second).status) == ("Rejected", "RUNNING")


def test_values_of_odd_inputs_are_empty() -> None:
    """A path through what is no object or list leads nowhere, and raises nothing."""
    from console.features.tasks import views as task_views

    cases: list[Any] = [("4", ("a",)), ("[]", (0,)), ("{", ("a",)), ('{"a": 1}', ("a", "b"))]
    for payload, path in cases:
        assert task_views._value_text(payload, path) == ""


@pytest.mark.parametrize("address", ["link", "/tasks/"])
def test_the_enter_key_approves_nothing(project: Project, client: Client, address: str) -> None:
    """Enter in a field presses a form's first button; one that is disabled keeps the form here."""
    execution = waiting(project, APPROVAL)
    link = make_link(client, execution, hours="1")
    shown = text(client.get(link if address == "link" else address))
    form_of_answer = next(part for part in shown.split("<form")[1:] if 'value="approve"' in part)
    assert form_of_answer.split("<button")[1].startswith(" disabled hidden>")
