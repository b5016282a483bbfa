"""X14: a reader sees a masked value in no page, diff, search hit or download."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import URLPattern, URLResolver

from console.db import audit
from console.masking import masked_execution
from console.models import (
    AuditEntry,
    Execution,
    HistoryEvent,
    LogGroup,
    Project,
    StateMachine,
    TaskRow,
)
from console.store.executions.stop import stop_execution
from console.store.tasks import activities, claim, complete
from console.web.urls import urlpatterns
from tests.console.store.helpers import ACTIVITY, PASS, REGION, WAIT, create, drain, ended, start
from tests.console.web.helpers import page, text
from tests.console.worker.nesting import starting, worked
from tests.features.imports.test_imports import GIVEN, HISTORY
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from django.test import Client

    SignIn = Callable[[str], Client]

CANARY = "4929-canary-7831"
PATHS = "$.card.number\n$..password\n$.items[*].pin"
INPUT = {
    "card": {"number": CANARY, "kind": "visible-kind"},
    "order": 4711,
    "items": [{"pin": 98127634, "of": "a"}, {"pin": 55512399, "of": "b"}],
}
CHILD = {
    "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"},
    "StartAt": "Item",
    "States": {"Item": {"Type": "Pass", "End": True}},
}
WAYS = {
    "StartAt": "Rename",
    "States": {
        "Rename": {
            "Type": "Pass",
            "Parameters": {
                "other.$": "$.card.number",
                "said.$": "States.Format('card {} came', $.card.number)",
                "text.$": "States.JsonToString($)",
                "card.$": "$.card",
                "items.$": "$.items",
            },
            "Assign": {"kept.$": "$.card.number"},
            "Next": "Each",
        },
        "Each": {
            "Type": "Map",
            "ItemsPath": "$.items",
            "ItemProcessor": CHILD,
            "ResultPath": "$.made",
            "Next": "Ask",
        },
        "Ask": {
            "Type": "Task",
            "Resource": ACTIVITY,
            "ResultPath": "$.answer",
            "Catch": [{"ErrorEquals": ["States.ALL"], "ResultPath": "$.lost", "Next": "Bad"}],
            "Next": "Bad",
        },
        "Bad": {"Type": "Fail", "Error": "Refused", "CausePath": "$.text"},
    },
}
SECRETS = (CANARY, "98127634", "55512399", "hunter2-canary")


def mask(project: Project, paths: str = PATHS) -> None:
    """Set the paths."""
    Project.objects.filter(pk=project.pk).update(masked=paths)
    project.masked = paths


@pytest.fixture
def run(project: Project, worker: Any) -> Execution:
    """Return an execution that took hidden values everywhere: renamed, in causes, to children."""
    del worker
    return taken_everywhere(project)


def logged(project: Project, machine: StateMachine) -> StateMachine:
    """Let a machine log everything; return it anew."""
    log = {"level": "ALL", "includeExecutionData": True}
    group = "/aws/vendedlogs/states/x"
    arn = f"arn:aws:logs:{REGION}:123456789012:log-group:{group}:*"
    log["destinations"] = [{"cloudWatchLogsLogGroup": {"logGroupArn": arn}}]
    from console.store.machines import log_groups, machines

    log_groups.check_group_name(project, REGION, log)
    machines.update_machine(machine, logging=json.dumps(log))
    return StateMachine.objects.get(pk=machine.pk)


def taken_everywhere(project: Project) -> Execution:
    """Run it, with a worker beside, and return it when it has ended."""
    mask(project)
    activities.create_activity(project, REGION, "work")
    execution = start(logged(project, create(project, WAYS)), INPUT, "x")
    work = wait_until(lambda: claim.take_activity_task(ACTIVITY, "w"))
    assert work is not None
    cause = {"errorMessage": f"{CANARY} refused", "password": "hunter2-canary", "again": 1}
    complete.fail(work.token, "Late", json.dumps(cause))
    return ended(execution)


def addresses(run: Execution) -> Iterator[str]:
    """Yield every address there is, with each thing of this execution put into it."""
    numbers = list(HistoryEvent.objects.filter(execution=run).values_list("event_id", flat=True))
    names = {
        "machine_name": ["machine"],
        "execution_name": [run.name],
        "number": [str(number) for number in numbers],
        "field": ["input", "output", "cause", "parameters"],
        "arn": [run.arn],
        "activity_name": ["work"],
    }
    for route in _routes(urlpatterns, ""):
        paths = [route]
        for name, values in names.items():
            marks = [f"<{kind}:{name}>" for kind in ("str", "number", "path")]
            for mark in marks:
                paths = [
                    address.replace(mark, value)
                    for address in paths
                    for value in (values if mark in address else [""])
                ]
        yield from (f"/{address}" for address in paths if "<" not in address)
    yield from ASKED
    for state in ("Rename", "Each", "Ask", "Bad"):
        for tab in ("io", "flow", "details", "definition", "attempts", "events"):
            yield page(run, f"?step={state}&tab={tab}")
            yield page(run, f"_step?step={state}&tab={tab}")
    for at in numbers:
        yield page(run, f"_at?at={at}&step=Rename&tab=flow")
        yield page(run, f"?at={at}")
        yield f"/machines/machine/logs/?line={run.pk}-{at}"
        yield f"/machines/machine/logs/?execution={run.name}&open={run.pk}-{at}"
    opened = ",".join(map(str, numbers))
    yield page(run, f"_delta?after=1&follow=1&open={opened}")
    yield page(run, f"events/?open={opened}")


ASKED = (
    "/machines/machine/start/?origin=x",
    "/machines/machine/test/?state=Rename&origin=x",
    "/machines/machine/logs/?pattern=canary",
    "/executions/?children=with",
)


def _routes(patterns: Any, before: str) -> Iterator[str]:
    for pattern in patterns:
        route = before + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from _routes(pattern.url_patterns, route)
        elif isinstance(pattern, URLPattern):
            yield route


def said(client: Client, address: str) -> str | None:
    """Return what an address answers, None where it has nothing."""
    answer: Any = client.get(address)
    if answer.status_code not in (200, 422):
        return None
    whole = b"".join(answer.streaming_content) if answer.streaming else answer.content
    return str(whole.decode())


@pytest.mark.slow
@pytest.mark.postgres_too
def test_x14_a_masked_value_is_in_no_answer(run: Execution, signed_in: SignIn) -> None:
    """Every page, fragment and download there is, as a viewer."""
    client = signed_in("viewer")
    read = {}
    for address in [*addresses(run), *_of_children()]:
        answer = said(client, address)
        if answer is not None:
            read[address] = answer
            secrets = [secret for secret in SECRETS if secret in answer]
            assert not secrets, f"{address} tells {secrets}"
    assert len(read) > 100
    assert any("/map-runs/" in address and not address.endswith("_delta") for address in read)
    for file in ("", "export.json", "events.csv", "events.json", "input.json", "cause.json"):
        assert "(masked)" in read[page(run, file)], file
    assert "--input file://input.json" in read[page(run)]
    assert "visible-kind" in read[page(run)]
    assert "(masked)" in read["/machines/machine/logs/"]


def _of_children() -> Iterator[str]:
    for child in Execution.objects.exclude(map_run=None):
        machine = child.state_machine_arn.rpartition(":")[2].replace("/", "~")
        for more in ("", "events/?open=1,2,3", "export.json", "input.json", "output.json"):
            yield f"/machines/{machine}/executions/{child.name}/{more}"


@pytest.mark.postgres_too
def test_x14_the_value_is_really_there(run: Execution) -> None:
    """In the rows, and under other names than the paths': the crawl above is worth something."""
    told = "".join(HistoryEvent.objects.values_list("details", flat=True))
    assert all(secret in told for secret in SECRETS)
    assert "card 4929" in told
    assert run.cause is not None
    assert CANARY in run.cause
    assert Execution.objects.exclude(map_run=None).count() == 2


SOUGHT = (
    CANARY,
    "canary",
    f'input.card.number = "{CANARY}"',
    f'output.other = "{CANARY}"',
    f'cause = "{CANARY}"',
    "hunter2",
    "98127634",
)


@pytest.mark.postgres_too
def test_x14_a_search_does_not_tell_either(run: Execution, signed_in: SignIn) -> None:
    """No hit, no count of new ones, no bulk action's choice, no event."""
    client = signed_in("operator")
    for find in SOUGHT:
        listed: Any = client.get("/executions/", {"find": find, "children": "with"})
        assert listed.context["executions"].rows == (), find
        asked: dict[str, Any] = {"find": find, "newest": 0, "count": 0, "children": "with"}
        assert client.get("/executions/_new", asked).status_code == 204
        plan: Any = client.get("/executions/bulk/", {"action": "redrive", "all": "1", "find": find})
        assert list(plan.context["eligible"]) == []
        events: Any = client.get(page(run, "events/"), {"text": find})
        assert events.context["events"].rows == ()


@pytest.mark.postgres_too
def test_x14_what_is_not_masked_is_found(run: Execution, signed_in: SignIn) -> None:
    """By word, by value and in the events."""
    client = signed_in("viewer")
    for find in ("visible-kind", "input.order = 4711", "error = Refused", f"name = {run.name}"):
        response: Any = client.get("/executions/", {"find": find})
        assert [row.pk for row in response.context["executions"].rows] == [run.pk], find
    answer = client.get("/executions/_new", {"find": "visible-kind", "newest": "0", "count": "0"})
    assert "1 new" in text(answer)
    events: Any = client.get(page(run, "events/"), {"text": "visible-kind"})
    assert events.context["events"].matching > 3


def test_x14_revealing_is_a_right_and_on_record(run: Execution, signed_in: SignIn) -> None:
    """A viewer is refused; an operator sees it, for a while, and the audit has who and why."""
    viewer, operator, other = signed_in("viewer"), signed_in("operator"), signed_in("editor")
    assert viewer.post(page(run, "reveal/")).status_code == 403
    assert "Reveal" not in text(viewer.get(page(run)))
    assert "Reveal for 10 minutes" in text(operator.get(page(run)))
    asked = {"reason": "ticket 12", "next": page(run, "?step=Rename")}
    assert operator.post(page(run, "reveal/"), asked)["Location"] == page(run, "?step=Rename")
    for address in ("", "_delta?after=0", "events/?open=2", "input.json", "events.csv"):
        answer = operator.get(page(run, address))
        assert CANARY in answer.content.decode(), address
        assert answer["Cache-Control"] == "no-store"
    row = AuditEntry.objects.get(action="RevealPayloads", actor="operator")
    assert (row.actor, row.target, row.reason) == ("operator", run.arn, "ticket 12")
    assert CANARY not in text(other.get(page(run)))
    operator.post(page(run, "reveal/"), {"act": "hide"})
    assert CANARY not in text(operator.get(page(run)))


def test_x14_a_right_that_was_lost_reveals_no_more(
    run: Execution, signed_in: SignIn, project: Project
) -> None:
    """Who becomes a viewer while it is shown sees the mask at once."""
    from console.models import Membership

    operator = signed_in("operator")
    operator.post(page(run, "reveal/"))
    Membership.objects.filter(project=project, user__username="operator").update(role="viewer")
    assert CANARY not in text(operator.get(page(run)))


def test_x14_the_same_again_starts_with_the_true_value(run: Execution, signed_in: SignIn) -> None:
    """The form shows the mask; what is left as it was has the value it had."""
    client = signed_in("operator")
    form: Any = client.get("/machines/machine/start/?origin=x")
    shown = form.context["input"]
    assert CANARY not in shown
    assert json.loads(shown)["card"]["number"] == "(masked)"
    typed = json.loads(shown) | {"order": 5}
    asked = {"origin": "x", "input": json.dumps(typed), "name": "y"}
    assert client.post("/machines/machine/start/", asked).status_code == 302
    assert json.loads(Execution.objects.get(name="y").input) == {**INPUT, "order": 5}


def test_x14_a_diff_of_two_shows_no_masked_value(project: Project, signed_in: SignIn) -> None:
    """Nor that they differ there."""
    mask(project)
    machine = create(project, PASS)
    a, b = (
        drain(start(machine, {"card": {"number": f"{number}-canary"}, "n": number}))
        for number in (11111, 22222)
    )
    shown: Any = signed_in("viewer").get("/compare/", {"a": a.arn, "b": b.arn})
    paths = [difference.path for diff in shown.context["diffs"] for difference in diff.differences]
    assert paths == ["n", "n"]
    assert "-canary" not in text(shown)


@pytest.mark.usefixtures("worker")
def test_x14_the_audit_masks_what_people_quoted(project: Project, signed_in: SignIn) -> None:
    """The cause of a stop stands in the audit: in the page, and in what it exports."""
    project.masked = PATHS
    project.save()
    execution = start(create(project, WAIT), INPUT, name="stopped")
    stop_execution(execution, cause=f"the card {CANARY} is stolen", actor=audit.Actor("ada"))
    assert CANARY in AuditEntry.objects.get(action="StopExecution").reason
    client = signed_in("viewer")
    for address in ("/audit/", "/audit.csv", page(execution)):
        answer = said(client, address) or ""
        assert "the card (masked) is stolen" in answer, address
        assert CANARY not in answer, address
    stopped = AuditEntry.objects.get(action="StopExecution")
    stopped.reason = f"{'x' * 240} {CANARY}"[: audit.LONGEST_REASON]
    stopped.save()
    for address in ("/audit/", "/audit.csv", page(execution)):
        assert CANARY[:5] not in (said(client, address) or ""), address


def test_x14_failures_with_masked_values_are_one_kind(project: Project, signed_in: SignIn) -> None:
    """Their causes differ only in what nobody may see."""
    mask(project)
    fail = {"StartAt": "F", "States": {"F": {"Type": "Fail", "CausePath": "$.password"}}}
    machine = create(project, fail)
    for password in ("canary-a", "canary-b"):
        drain(start(machine, {"password": password}))
    answer: Any = signed_in("viewer").get("/failures/")
    shown = text(answer)
    assert [kind.count for kind in answer.context["groups"]] == [2]
    assert "canary" not in shown
    assert "(masked)" in shown


def test_x14_an_imported_history_is_masked_too(project: Project, client: Client) -> None:
    """Input, events and download."""
    mask(project, "$.a")
    told = json.dumps(HISTORY).replace('\\"a\\": 1', '\\"a\\": \\"canary-8\\"')
    assert "canary-8" in told
    where = str(client.post("/import/", {**GIVEN, "history": told})["Location"])
    for more in ("", "?step=P", "events/?open=1,2,3,4", "export.json", "input.json"):
        answer = said(client, where + more)
        assert answer is not None
        assert "canary-8" not in answer
        assert "(masked)" in answer


@pytest.mark.postgres_too
def test_x14_a_task_that_waits_is_masked(project: Project, client: Client) -> None:
    """On its own page; whoever has its token still gets the value."""
    mask(project)
    activities.create_activity(project, REGION, "work")
    ask = {"StartAt": "A", "States": {"A": {"Type": "Task", "Resource": ACTIVITY, "End": True}}}
    execution = drain(start(create(project, ask), {"password": "canary-1"}, "x"))
    row = TaskRow.objects.get(execution=execution)
    shown = text(client.get(page(execution, f"tasks/{row.task}/")))
    assert "canary-1" not in shown
    assert "(masked)" in shown
    work = claim.take_activity_task(ACTIVITY, "w")
    assert work is not None
    assert "canary-1" in work.input


def test_x14_a_nested_execution_hides_what_its_parents_hide(
    project: Project, signed_in: SignIn
) -> None:
    """Under whatever name the value was handed on, and however deep; others show their own."""
    project.masked = PATHS
    project.save()
    last = create(project, PASS, "last")
    middle = create(project, starting(last, Input={"deeper.$": "$.renamed"}), "middle")
    first = create(project, starting(middle, Input={"renamed.$": "$.card.number"}), "first")
    worked(drain(start(first, INPUT)))
    worked(drain(Execution.objects.get(state_machine=middle)))
    drain(Execution.objects.get(state_machine=last))
    viewer = signed_in("viewer")
    for machine in (middle, last):
        execution = Execution.objects.get(state_machine=machine)
        assert CANARY in execution.input
        shown = text(viewer.get(f"/machines/{machine.name}/executions/{execution.name}/"))
        assert CANARY not in shown
        assert "(masked)" in shown
        mask = masked_execution.masks_of(project, [execution.pk])[execution.pk]
        assert CANARY not in mask.payload(execution.input)
    alone = drain(start(last, {"deeper": CANARY}, name="alone"))
    assert CANARY in text(viewer.get(f"/machines/last/executions/{alone.name}/"))


def test_x14_paths_are_kept_by_editors(project: Project, signed_in: SignIn) -> None:
    """A viewer reads them; a wrong one is told with its place; the audit has the list."""
    viewer, editor = signed_in("viewer"), signed_in("editor")
    assert viewer.post("/settings/", {"paths": "$.a"}).status_code == 403
    wrong = text(editor.post("/settings/", {"paths": "$.a\n$.b[?(@.c)]"}), 422)
    assert "Path 2: " in wrong
    assert "$.b[?(@.c)]" in wrong
    assert editor.post("/settings/", {"paths": " $.a \r\n\r\n$..b\n$.a"}).status_code == 302
    assert Project.objects.get().masked == "$.a\n$..b"
    shown = text(viewer.get("/settings/"))
    assert "$..b" in shown
    assert "Save" not in shown
    assert AuditEntry.objects.get(action="PutMaskedPaths", actor="editor").reason == "$.a, $..b"


def test_x14_a_form_without_paths_does_not_unmask_a_project(
    project: Project, signed_in: SignIn
) -> None:
    """A script that leaves the field out is told so; an empty field masks nothing."""
    editor = signed_in("editor")
    editor.post("/settings/", {"paths": "$.a"})
    refused = text(editor.post("/settings/", {}), 422)
    assert "Send one path per line" in refused
    assert ">$.a</textarea>" in refused
    assert Project.objects.get(pk=project.pk).masked == "$.a"
    assert editor.post("/settings/", {"paths": ""}).status_code == 302
    assert Project.objects.get(pk=project.pk).masked == ""


def test_x14_paths_that_somebody_else_changed_are_not_lost(
    project: Project, signed_in: SignIn
) -> None:
    """The second save is told of the first, with both texts, and may replace what it has seen."""
    ann, ben = signed_in("editor"), signed_in("owner")
    opened = re.search(r'name="revision" value="([^"]+)"', text(ben.get("/settings/")))
    assert opened is not None
    assert ann.post("/settings/", {"paths": "$.theirs"}).status_code == 302
    mine = {"paths": "$.mine", "revision": opened[1]}
    shown = text(ben.post("/settings/", mine), 409)
    for said in ("$.mine", "$.theirs", ">editor<", "after you opened them"):
        assert said in shown
    assert Project.objects.get(pk=project.pk).masked == "$.theirs"
    over = re.search(r'name="over" value="([^"]+)"', shown)
    assert over is not None
    assert ben.post("/settings/", mine | {"over": over[1]}).status_code == 302
    assert Project.objects.get(pk=project.pk).masked == "$.mine"


def test_x14_masking_takes_few_queries(run: Execution, signed_in: SignIn) -> None:
    """However much there is, with what is hidden found out anew.

    The overview has what three pages have: lists, the failures of a day by kind, and charts. Two
    queries ask for paused executions and for the pause of all schedules.
    The failures look for failed children of Map Runs, too, which are counted apart. The page of an
    execution asks once for its summary.
    """
    from console.masking import masked_execution

    client = signed_in("viewer")
    limits = {page(run): 16, page(run, "?step=Rename&tab=flow"): 17, "/": 23, "/failures/": 17}
    for address, most in limits.items():
        text(client.get(address))  # what the process remembers besides
        masked_execution._memory.clear()
        with CaptureQueriesContext(connection) as queries:
            text(client.get(address))
        assert len(queries) <= most, (address, [query["sql"][:90] for query in queries])
    assert LogGroup.objects.exists()


def test_x14_what_is_remembered_of_many_executions_is_bounded(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was read longest ago is read again, and hides the same."""
    from console.masking import masked_execution

    mask(project)
    machine = create(project, PASS)
    several = [drain(start(machine, {"password": f"canary-{number}"})) for number in range(4)]
    monkeypatch.setattr(masked_execution, "KEPT", 3)
    for _ in range(2):
        for number, execution in enumerate(several):
            shown = masked_execution.mask_execution(Execution.objects.get(pk=execution.pk))
            assert shown.input == '{"password":"(masked)"}'
            assert masked_execution.masked_execution(shown).mask.values == {f"canary-{number}"}
    assert len(masked_execution._memory._known_values) == 1


def test_the_masks_of_an_execution_that_grows_are_bounded() -> None:
    """Each look at it makes another one, of all its values."""
    from console.masking import masked_execution

    masks = masked_execution._Masks()
    places = masked_execution.places_of(PATHS)
    for size in range(9_000, 9_050):
        values = frozenset(map(str, range(size)))
        assert masks.of(places, values) is masks.of(places, values)
    assert (
        sum(1 + len(values) for _, values in masks._made)
        == masks._size
        <= masked_execution.MASKED_VALUES
    )
    alone = frozenset(map(str, range(2 * masked_execution.MASKED_VALUES)))
    assert masks.of(places, alone) is masks.of(places, alone)
    assert len(masks._made) == 1
