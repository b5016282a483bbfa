"""X2: open tasks are listed, with what they wait for, and so are the activities."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from django.conf import settings
from django.db import connection
from django.db.models import F
from django.test.utils import CaptureQueriesContext

import engine
from console.db import signals
from console.models import Activity, AuditEntry, Execution, TaskRow, Timer
from console.statuses import Topic
from console.store.executions.start import start_execution
from console.store.machines import tags
from console.store.tasks import activities, claim, complete, lost_calls
from console.web.core.formatting import clock_text
from tests.console.store.helpers import (
    ACTIVITY,
    REGION,
    WORK,
    create,
    drain,
    function,
    one,
    start,
)
from tests.console.web.helpers import CHAIN, MARKUP, markup, page, text

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.test import Client

    from console.models import Project

    SignIn = Callable[[str], Client]

PAGE = f"/activities/{ACTIVITY.rpartition(':')[2]}/"
CALLBACK = one(
    "Approve",
    Type="Task",
    Resource="arn:aws:states:::sqs:sendMessage.waitForTaskToken",
    Parameters={"QueueUrl": "https://q", "MessageBody": {"token.$": "$$.Task.Token"}},
    HeartbeatSeconds=600,
)


def waiting(project: Project, definition: dict[str, Any] = WORK, name: str = "x") -> Execution:
    """Return an execution that waits at its one task."""
    activities.create_activity(project, REGION, "work")
    machine = project.statemachine_set.first() or create(project, definition)
    return drain(start(machine, {"n": 1}, name))


def form(execution: Execution) -> str:
    """Return the address of the form of its one open task."""
    row = TaskRow.objects.exclude(status="closed").get(execution=execution)
    return page(execution, f"tasks/{row.task}/")


def token_of(execution: Execution) -> str:
    """Return the token of its one task."""
    task = TaskRow.objects.get(execution=execution).task
    return engine.task_token(settings.STATEYARD_TOKEN_KEY, execution.arn, task)


# -- the list of open tasks and the activities ----------------------------------------------------


@pytest.mark.postgres_too
def test_open_tasks_are_listed_with_where_they_wait(project: Project, client: Client) -> None:
    """State, execution, kind, worker and deadline are there; what has ended is not."""
    execution = waiting(project)
    done = waiting(project, name="done")
    work = claim.take_activity_task(Activity.objects.get().arn, f"w1 {MARKUP}")
    assert work is not None
    complete.succeed(claim.take_activity_task(Activity.objects.get().arn).token, "1")
    drain(done)
    shown = text(client.get("/tasks/"))
    assert "1 open task" in shown
    assert form(execution) in shown
    assert "Activity task" in shown
    assert "Picked up by a worker" in shown
    assert "w1 <script>" in shown
    assert MARKUP not in client.get("/tasks/").content.decode()
    assert "0 open tasks" in text(client.get("/tasks/?kind=callback"))


@pytest.mark.postgres_too
def test_open_tasks_show_the_time_by_which_they_are_sorted(
    project: Project, client: Client
) -> None:
    """When they were scheduled; when a worker took one stands beside the worker."""
    first, second = waiting(project), waiting(project, name="later")
    rows = TaskRow.objects.order_by("execution_id")
    for row, at_ms in zip(rows, (1_600_000_000_000, 1_600_000_060_000), strict=True):
        TaskRow.objects.filter(pk=row.pk).update(scheduled_ms=at_ms)
    assert claim.take_activity_task(ACTIVITY, "w1") is not None
    taken_ms = TaskRow.objects.get(execution=first).started_ms
    assert taken_ms is not None
    for place in ("/tasks/", PAGE):
        shown = markup(client.get(place))
        assert shown.index(form(first)) < shown.index(form(second))
        times = re.findall(r'data-since="(\d+)"', shown)[-2:]  # those of the rows
        assert times == ["1600000000000", "1600000060000"]
        assert re.search(rf"since ?<time[^>]*>{clock_text(taken_ms)} UTC", shown)
    assert "oldest first" in text(client.get("/tasks/"))


def test_the_overview_counts_the_open_tasks_that_its_link_lists(
    project: Project, client: Client
) -> None:
    """Also one that a worker has: it is open, though it waits for nobody else."""
    waiting(project)
    waiting(project, name="taken")
    assert claim.take_activity_task(ACTIVITY, "w1") is not None
    shown = re.sub(r"<[^>]+>|\s+", " ", markup(client.get("/")))
    assert re.search(r"Open tasks\s+2\b", shown)
    assert "Waits for somebody" not in shown
    assert "2 open tasks" in text(client.get("/tasks/"))


def test_a_callback_says_in_words_what_it_waits_for(project: Project, client: Client) -> None:
    """Its call was answered, so that no worker has it; the server's own name is nobody's."""
    execution = waiting(project, CALLBACK)
    own = claim.OWN + claim.BUILTIN_WORKER
    TaskRow.objects.update(status="waiting", started_ms=F("scheduled_ms"), worker=own)
    for place in ("/tasks/", page(execution), form(execution)):
        shown = text(client.get(place))
        assert "Waiting for its task token" in shown, place
        assert "stepyard-builtin" not in shown, place
    TaskRow.objects.update(status="started", kind="activity")
    shown = re.sub(r"<[^>]+>|\s+", " ", markup(client.get("/tasks/")))
    assert re.search(r"Picked up by a worker\s*· this server", shown)


def test_a_task_says_which_clocks_begin_when_it_is_picked_up(
    project: Project, client: Client
) -> None:
    """Until then no clock runs: that is not the same as no deadline. Callbacks have theirs."""
    limited = one("W", Type="Task", Resource=ACTIVITY, TimeoutSeconds=3600, HeartbeatSeconds=90)
    execution = waiting(project, limited)
    places = ("/tasks/", PAGE, form(execution))
    for place in places:
        shown = re.sub(r"<[^>]+>", " ", markup(client.get(place)))
        assert "1 h once picked up start to close (TimeoutSeconds)" in shown, place
        assert "1 min 30 s once picked up heartbeat (HeartbeatSeconds)" in shown, place
    assert claim.take_activity_task(ACTIVITY, "w1") is not None
    for place in places:
        shown = markup(client.get(place))
        assert "once picked up" not in shown, place
        assert "heartbeat (HeartbeatSeconds)" in shown, place


def test_a_task_without_a_limit_has_no_deadline(project: Project, client: Client) -> None:
    """The year that every task has is none to speak of."""
    waiting(project)
    assert (
        '<td class="secondary from-900" data-label="Deadline"><span class="muted">none'
        in markup(client.get("/tasks/"))
    )


def test_tasks_of_others_are_not_there(project: Project, signed_in: SignIn) -> None:
    """Another project's and another region's tasks are in no list and have no form."""
    from console.models import Project as Projects

    other = Projects.objects.create(name="other", account_id="999999999999")
    theirs = drain(start(create(other, CHAIN, "theirs"), name="x"))
    execution = waiting(project)
    viewer = signed_in("viewer")
    assert "1 open task" in text(viewer.get("/tasks/"))
    assert "0 open tasks" in text(viewer.get("/tasks/?region=eu-west-1"))
    assert viewer.get(page(theirs, "tasks/5/")).status_code == 404
    assert viewer.get(page(execution, "tasks/99/")).status_code == 404


@pytest.mark.postgres_too
def test_pages_of_tasks_neither_repeat_nor_skip(project: Project, client: Client) -> None:
    """Fifty at a time by key, first scheduled first."""
    for number in range(53):
        waiting(project, name=f"x{number:02d}")
    TaskRow.objects.update(scheduled_ms=1)  # all at once: the rest of the key decides
    first = text(client.get("/tasks/"))
    after = TaskRow.objects.order_by("execution_id")[49]
    second = text(client.get(f"/tasks/?after=1-{after.execution_id}-{after.task}"))
    assert f"after=1-{after.execution_id}-{after.task}" in first
    seen = [f"/x{n:02d}/tasks/" for n in range(53)]
    assert [address in first for address in seen] == [True] * 50 + [False] * 3
    assert [address in second for address in seen] == [False] * 50 + [True] * 3


@pytest.mark.parametrize("address", ["/tasks/", "/activities/", PAGE])
def test_queries_do_not_grow_with_the_rows(project: Project, client: Client, address: str) -> None:
    """One task costs as many queries as thirty, and at most fifteen."""
    waiting(project)

    def count() -> int:
        with CaptureQueriesContext(
            connection,
        ) as seen:
            text(client.get(address))
        return len(seen)

    count()  # the first one asks what is kept from then on
    few = count()
    for number in range(30):
        waiting(project, name=f"x{number}")
        activities.create_activity(project, REGION, f"a{number}")
    assert few == count() <= 15


def test_an_execution_with_many_open_tasks_costs_no_more(project: Project, client: Client) -> None:
    """Its page and its poll: as many queries for one iteration as for forty."""
    activities.create_activity(project, REGION, "work")
    machine = create(project, one("M", Type="Map", ItemProcessor=WORK))

    def count(items: int, query: str) -> int:
        execution = drain(start_execution(machine, input=json.dumps([1] * items)))
        assert TaskRow.objects.filter(execution=execution).count() == items
        text(client.get(page(execution, query)))  # the trace is remembered from here on
        looks = []
        for _ in range(3):  # one of them may ask anew what is kept for some seconds
            with CaptureQueriesContext(connection) as seen:
                text(client.get(page(execution, query)))
            looks.append(len(seen))
        return min(looks)

    for query in ("", "_delta?after=1"):
        assert count(1, query) == count(40, query) <= 15


def test_an_editor_creates_and_deletes_an_activity(project: Project, client: Client) -> None:
    """With words for a bad name, and an audit row for each change."""
    assert "No activities yet" in text(client.get("/activities/"))
    assert "Invalid" in text(client.post("/activities/", {"name": "a b"}), 422)
    client.post("/activities/", {"name": "ship"})
    assert 'href="/activities/ship/"' in text(client.get("/activities/"))
    lead = client.get(f"/arn/{Activity.objects.get().arn}")
    assert lead["Location"].startswith("/activities/ship/")
    client.post("/activities/ship/", {"act": "delete"})
    assert client.get("/activities/ship/").status_code == 404
    entries = AuditEntry.objects.order_by("pk").values_list("action", "actor")
    assert list(entries) == [("CreateActivity", "editor"), ("DeleteActivity", "editor")]


def test_an_editor_sets_the_timeouts_of_an_activity(project: Project, client: Client) -> None:
    """Empty is NONE; what is no time is refused and nothing stored; a viewer reads them."""
    arn = activities.create_activity(project, REGION, "work").arn
    sent = {"act": "timeouts", "stateyard:heartbeatTimeout": "30"}
    client.post(PAGE, sent)
    assert tags.get_tags(arn)["stateyard:heartbeatTimeout"] == "30"
    assert tags.get_tags(arn)["stateyard:startToCloseTimeout"] == "NONE"
    assert 'value="30"' in text(client.get(PAGE))
    assert AuditEntry.objects.get(action="TagResource").target == arn
    wrong = client.post(PAGE, {**sent, "stateyard:heartbeatTimeout": "soon"})
    assert "must be a number of seconds" in text(wrong, 422)
    assert 'value="soon"' in text(wrong, 422)
    assert tags.get_tags(arn)["stateyard:heartbeatTimeout"] == "30"


def test_the_page_says_when_nobody_polls(project: Project, client: Client) -> None:
    """A warning as long as work waits and no worker listens; of several processes, at none."""
    waiting(project)
    is_said = "No worker polls" in text(client.get(PAGE))
    assert is_said == (connection.vendor == "sqlite"), "another process may have a worker"
    TaskRow.objects.update(scheduled_ms=F("scheduled_ms") - 6_000)
    assert "No worker polls this activity now" in text(client.get(PAGE))
    assert "Nobody polls" in text(client.get("/activities/"))
    end = signals.subscribe((Topic.ACTIVITY, Activity.objects.get().arn), lambda: None)
    assert "Nobody polls" not in text(client.get("/activities/"))
    assert "No worker polls" not in text(client.get(PAGE))
    end()


def test_the_page_of_an_activity_counts_and_says_how_to_work_it(
    project: Project, client: Client
) -> None:
    """What waits, since when, and a program that polls just this activity; the list leads there."""
    waiting(project)
    TaskRow.objects.update(scheduled_ms=F("scheduled_ms") - 6_000)
    shown = markup(client.get(PAGE))
    tiles = re.findall(r'<div class="card tile">(.*?)</div>', shown)
    words = [" ".join(re.sub(r"<[^>]+>", " ", tile).split()) for tile in tiles]
    polling = "Workers polling now 0"
    polling += "" if connection.vendor == "sqlite" else " at this web process"
    assert words[:3] == ["Waiting for a worker 1", "In progress 0", polling]
    assert words[3].startswith("Oldest waits for ")
    assert words[4] == "Last picked up - not in the last 24 hours"
    assert '<a href="#worker">Start a worker</a>' in shown
    program = client.get(PAGE).context["program"]
    compile(program, "worker.py", "exec")
    assert f'activityArn="{ACTIVITY}"' in program
    listed = markup(client.get("/activities/"))
    assert f'Tasks are waiting, but no worker is polling:<a href="{PAGE}#worker">' in listed


@pytest.mark.postgres_too
def test_the_list_of_activities_shows_the_program_that_is_missing(
    project: Project, client: Client
) -> None:
    """Where tasks wait and nobody polls, not where nothing waits, be that first by name."""
    waiting(project)
    activities.create_activity(project, REGION, "a-first-one")
    TaskRow.objects.update(scheduled_ms=F("scheduled_ms") - 6_000)
    shown = client.get("/activities/").context
    assert shown["first_name"] == Activity.objects.get(arn=ACTIVITY).name
    assert f'activityArn="{ACTIVITY}"' in shown["program"]


def test_the_answer_stands_after_what_is_asked(project: Project, signed_in: SignIn) -> None:
    """A person reads what a task waits for before the buttons that answer it."""
    waiting(project)
    shown = markup(signed_in("operator").get("/tasks/"))
    heads = re.findall(r'<th scope="col"[^>]*>(.*?)</th>', shown)
    assert heads[0] == "State"
    assert heads.index("Answer") == heads.index("Waits for") + 1


# -- the panel -------------------------------------------------------------------------------------


def test_x2_the_execution_names_what_it_waits_for(project: Project, client: Client) -> None:
    """An activity, a wait with its end, and nothing any more once it has ended."""
    execution = waiting(project)
    panel = text(client.get(page(execution))).split('id="waiting"')[1].split("</section>")[0]
    assert "Activity task" in panel
    assert "Answer from an activity worker or an operator" in panel
    assert f'href="{form(execution)}"' in panel
    client.post(form(execution), {"act": "complete", "output": "1"})
    drain(execution)
    assert 'aria-labelledby="waiting-title" hidden>' in markup(client.get(page(execution)))
    assert 'aria-labelledby="waiting-title" hx-swap-oob="true" hidden>' in markup(
        client.get(page(execution, "_delta?after=0"))
    )


def test_x2_timers_and_retries_have_their_end(project: Project, client: Client) -> None:
    """A Wait says when it goes on, a pause when the next attempt comes, a limit when it ends."""
    retrying = {
        **one(
            "A",
            Type="Task",
            Resource=WORK["States"]["A"]["Resource"],
            Retry=[{"ErrorEquals": ["States.ALL"], "IntervalSeconds": 900}],
        ),
        "TimeoutSeconds": 4000,
    }
    execution = waiting(project, retrying)
    client.post(form(execution), {"act": "fail", "error": "Again"})
    drain(execution)
    shown = markup(client.get(page(execution)))
    assert "Waiting for retry 1" in shown
    assert "left, then tries again" in shown
    assert "left, then times out" in shown
    asleep = drain(start(create(project, CHAIN, "chain"), name="z"))
    due = Timer.objects.get(execution=asleep).due_ms
    shown = markup(client.get(page(asleep)))
    assert f'data-until="{due}"' in shown
    assert "left, then continues" in shown


def test_a_task_that_was_sent_again_is_marked(project: Project, client: Client) -> None:
    """In the panel, on the task's page and at its attempt: its worker was lost once."""
    machine = create(project, one("T", **function("pay")))
    execution = drain(start(machine, name="x"))
    row = TaskRow.objects.get()
    for _ in range(2):
        assert claim.claim_call(execution.pk, row.task) is not None
        assert lost_calls.recover_call(execution.pk, row.task)
    mark = "dispatched 2 times (its worker was lost)"
    assert mark in text(client.get(page(execution)))
    assert mark in text(client.get(page(execution, f"tasks/{row.task}/")))
    assert mark in text(client.get(page(execution, "?step=T&tab=attempts")))


def test_a_task_that_was_sent_once_is_not_marked(project: Project, client: Client) -> None:
    """Nor is one that waits."""
    execution = waiting(project)
    assert claim.take_activity_task(Activity.objects.get().arn, "w") is not None
    for query in ("", "tasks/3/", "?step=A&tab=attempts"):
        assert "dispatched 2 times" not in text(client.get(page(execution, query)))
