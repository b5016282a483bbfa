"""X8: equal failures are counted as one kind and redriven together."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from console.db import clock
from console.features.failures.kinds import group_address
from console.models import Execution, StateMachine
from console.store.executions.stop import stop_execution
from console.web.core.formatting import DAY, normalized_text
from tests.console.store.helpers import PASS, WAIT, create, drain, start
from tests.console.web.helpers import MARKUP, text

if TYPE_CHECKING:
    from django.test import Client

    from console.features.failures.kinds import FailureGroup
    from console.models import Project

TWO_WAYS: dict[str, Any] = {
    "StartAt": "Which",
    "States": {
        "Which": {
            "Type": "Choice",
            "Choices": [{"Variable": "$.late", "BooleanEquals": True, "Next": "Late"}],
            "Default": "Large",
        },
        "Late": {"Type": "Fail", "Error": "Late", "CausePath": "$.why"},
        "Large": {"Type": "Fail", "Error": "Large", "CausePath": "$.why"},
    },
}


def fail(machine: StateMachine, count: int, *, late: bool, why: str = "order {} failed") -> None:
    """Let so many executions fail in one way."""
    for number in range(count):
        drain(start(machine, {"late": late, "why": why.format(4711 + number)}))


def groups(client: Client, query: str = "") -> list[FailureGroup]:
    """Return the groups that the page shows."""
    return [kind.group for kind in client.get(f"/failures/?{query}").context["groups"]]


def test_x8_forty_failures_of_two_kinds_are_two_groups(project: Project, client: Client) -> None:
    """30 and 10; list and redrive of a group are exactly its 30."""
    machine = create(project, TWO_WAYS)
    for _ in range(10):
        fail(machine, 3, late=True)
        fail(machine, 1, late=False)
    drain(start(create(project, PASS, "fine")))
    many, few = groups(client)
    assert [len(group.failures) for group in (many, few)] == [30, 10]
    assert (many.like.state, many.like.error, many.like.cause) == (
        *("Late", "Late"),
        "order <n> failed",
    )
    late = set(Execution.objects.filter(error="Late").values_list("pk", flat=True))
    shown = client.get(f"/executions/?{group_address(many)}").context["executions"]
    assert {row.pk for row in shown.rows} == late
    fail(machine, 1, late=True)  # after the page was drawn
    plan = client.get(f"/executions/bulk/?action=redrive&all=1&{group_address(many)}").context[
        "plan"
    ]
    assert {execution.pk for execution in plan.eligible} == late
    page = text(client.get("/failures/"))
    counts = re.findall(r'href="([^"]*)"\s+aria-label="\d+ failures?: \w+"><b>(\d+)<', page)
    assert [count for _, count in counts] == ["31", "10"]
    for address, count in counts:
        shown = client.get(address).context["executions"]
        assert len(shown.rows) == int(count)
    assert f"/executions/bulk/?action=redrive&all=1&{group_address(groups(client)[0])}" in page


def test_the_innermost_state_is_told(project: Project, client: Client) -> None:
    """What fails inside a Parallel and a Map is not the Parallel's failure."""
    leaf = {"StartAt": "Leaf", "States": {"Leaf": {"Type": "Fail", "Error": "E"}}}
    each = {"Type": "Map", "ItemsPath": "$.items", "ItemProcessor": leaf, "End": True}
    branch = {"StartAt": "Each", "States": {"Each": each}}
    both = {"Type": "Parallel", "Branches": [branch], "End": True}
    drain(start(create(project, {"StartAt": "Both", "States": {"Both": both}}), {"items": [1]}))
    (group,) = groups(client)
    assert group.like.state == "Leaf"


def test_a_name_is_not_said_twice(project: Project, client: Client) -> None:
    """A state named as its error, and a cause that begins with it, say it once; the kind stays."""
    state = {"Type": "Fail", "Error": "OrderFailed", "Cause": "OrderFailed: too large"}
    drain(start(create(project, {"StartAt": "OrderFailed", "States": {"OrderFailed": state}})))
    (group,) = groups(client)
    assert (group.like.state_text, group.like.cause_text) == ("", "too large")
    assert group.like.cause == "OrderFailed: too large"
    for path in ("/failures/", "/"):
        shown = " ".join(text(client.get(path)).split())
        assert "OrderFailed: OrderFailed" not in shown
        assert "OrderFailed · machine" not in shown
    assert "machine · too large" in " ".join(text(client.get("/failures/")).split()).replace(
        "<bdi>", ""
    ).replace("</bdi>", "")


def test_a_time_out_and_a_stop(project: Project, client: Client) -> None:
    """A time-out is a failure where it happened; what somebody stopped is none."""
    nap = {"Type": "Wait", "Seconds": 9, "End": True}
    machine = create(project, {"StartAt": "Nap", "States": {"Nap": nap}, "TimeoutSeconds": 1})
    execution = start(machine)
    drain(execution)
    stop_execution(start(machine))
    assert groups(client) == []
    Execution.objects.filter(pk=execution.pk).update(status="TIMED_OUT", stop_ms=clock.now_ms())
    (group,) = groups(client)
    assert len(group.failures) == 1


def test_a_time_out_reads_as_a_sentence(project: Project, client: Client) -> None:
    """What timed out as a whole has no error: the page says how it ended, where, and the limit."""
    machine = create(project, {**WAIT, "TimeoutSeconds": 1}, "slow")
    execution = drain(start(machine))
    Execution.objects.filter(pk=execution.pk).update(
        status="TIMED_OUT", stop_ms=execution.start_ms + 1_000
    )
    (group,) = groups(client)
    assert (group.like.heading, group.like.cause_text) == (
        "Timed out at W",
        "limit: TimeoutSeconds",
    )
    assert "W: Timed out: TimeoutSeconds" not in text(client.get("/failures/"))
    assert "Timed out: TimeoutSeconds" not in text(client.get("/"))


@pytest.mark.postgres_too
def test_only_the_time_and_machine_asked_for(project: Project, client: Client) -> None:
    """A day, a week, one machine; other projects never."""
    from console.models import Project

    machine, other = create(project, TWO_WAYS), create(project, TWO_WAYS, "other")
    fail(machine, 1, late=True)
    fail(other, 1, late=True)
    theirs = Project.objects.create(name="theirs", account_id="999999999999")
    fail(create(theirs, TWO_WAYS, "secret"), 1, late=True)
    Execution.objects.filter(state_machine=other).update(start_ms=clock.now_ms() - 2 * DAY)
    assert len(groups(client)) == 1
    assert len(groups(client, "span=7d")) == 2
    (group,) = groups(client, "span=7d&machine=other")
    assert group.like.machine == other.pk
    assert "No failures" in text(client.get("/failures/?machine=other"))
    assert client.get("/failures/?machine=secret").status_code == 404


@pytest.mark.postgres_too
def test_failures_of_a_deleted_machine_can_still_be_listed(
    project: Project, client: Client
) -> None:
    """Their list does not ask for a machine that is gone."""
    fail(create(project, TWO_WAYS), 2, late=False)
    Execution.objects.update(state_machine=None)
    (group,) = groups(client)
    assert len(client.get(f"/executions/?{group_address(group)}").context["executions"].rows) == 2


def test_failures_of_a_deleted_machine_offer_no_redrive(project: Project, client: Client) -> None:
    """Neither when it is gone nor while it waits for its last execution; the others do."""
    machine = create(project, TWO_WAYS)
    fail(machine, 2, late=False)
    assert "Redrive…" in text(client.get("/failures/"))
    StateMachine.objects.update(status="DELETING")
    assert "Redrive…" not in text(client.get("/failures/"))
    Execution.objects.update(state_machine=None)
    machine.delete()
    assert "Redrive…" not in text(client.get("/failures/"))


def test_a_cause_that_is_cut_says_so() -> None:
    """It ends in an ellipsis, and one that is whole does not."""
    assert normalized_text("word " * 59) == ("word " * 59).strip()
    cut = normalized_text("a sentence " * 40)
    assert len(cut) <= 300
    assert cut.endswith("…")
    assert normalized_text("a" + " " * 1_300 + "b") == "a…"


@pytest.mark.parametrize(
    ("cause", "other"),
    [
        ("order 4711 is late", "order 12 is late"),
        ("took 1.5 s", "took 22.75 s"),
        (
            "no 3f2a0001-1111-4222-8333-abcdefabcdef here",
            "no 00000000-0000-4000-8000-000000000000 here",
        ),
        ("at 2026-01-02T03:04:05.678Z sharp", "at 2026-11-12 13:14 sharp"),
        ("commit 3f2a0001beef failed", "commit deadbeef01 failed"),
        ("no arn:aws:s3:::bucket-1/x", "no arn:aws:s3:::other/y"),
        ("no sku-4711 and order_4711", "no sku-12345 and order_815"),
        ("request 404 took 1200ms", "request 17 took 900ms"),
        ("invoice INV20260001 is paid", "invoice INV20260002 is paid"),
        (
            '{"errorType": "KeyError", "errorMessage": "id 7", "stackTrace": ["a"]}',
            '{"errorType": "KeyError", "errorMessage": "id 8", "stackTrace": ["b"]}',
        ),
    ],
)
def test_what_is_different_each_time_is_taken_out(cause: str, other: str) -> None:
    """Numbers, ids, times and stack traces make no new kind."""
    assert normalized_text(cause) == normalized_text(other)


@pytest.mark.parametrize(
    ("cause", "other"),
    [
        ("key 'id' is missing", "key 'name' is missing"),
        ("", "x"),
        ("deadbeef", "beefcake"),
        ("rejected with T2001", "rejected with T2002"),
        ("(Service: S3, Status Code: 404)", "(Service: S3, Status Code: 503)"),
    ],
)
def test_different_words_are_different_failures(cause: str, other: str) -> None:
    """Words stay."""
    assert normalized_text(cause) != normalized_text(other)


@pytest.mark.parametrize(
    ("cause", "kind"),
    [
        ('no "arn:aws:lambda:eu-1:1:function:a", sorry', 'no "<arn>", sorry'),
        ("no role (arn:aws:iam::1:role/x) or [arn:aws:s3:::b]", "no role (<arn>) or [<arn>]"),
        ("T2001: order 4711 is late", "T2001: order <n> is late"),
        ("Status Code: 404, after 12 tries", "Status Code: 404, after <n> tries"),
        ('{"statusCode": 503, "order": 4711}', '{"statusCode": 503, "order": <n>}'),
        ("HTTP/1.1 502 for order4711", "HTTP/1.1 502 for order<n>"),
        ("429 Client Error: Too Many Requests", "429 Client Error: Too Many Requests"),
        ("status 404711", "status <n>"),
    ],
)
def test_what_names_the_failure_stays(cause: str, kind: str) -> None:
    """Codes keep their digits, and what stands around an ARN stays."""
    assert normalized_text(cause) == kind


def test_the_page_explains_each_placeholder(project: Project, client: Client) -> None:
    """The words that stand for what differs are named above the kinds."""
    shown = text(client.get("/failures/"))
    assert all(word in shown for word in ("<n>", "<id>", "<time>", "<arn>"))


def test_a_page_of_failures_takes_as_many_queries_for_many(
    project: Project, client: Client
) -> None:
    """At most fifteen; what a cause says stays text."""
    machine = create(project, TWO_WAYS)
    counts = []
    for more in (1, 40):
        fail(machine, more, late=True, why=MARKUP)
        with CaptureQueriesContext(connection) as taken:
            page = client.get("/failures/").content.decode()
        counts.append(len(taken))
    assert counts[0] == counts[1]
    assert counts[0] <= 15
    assert MARKUP not in page
    assert client.get("/executions/?failure=nonsense").status_code == 422
