"""CloudWatch Logs has a group for each function, a stream for each execution that calls it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from console.awsapi import services
from console.db.audit import Actor
from console.features.logs.models import FunctionLog
from console.models import AuditEntry, Execution
from console.store.executions.start import start_execution
from console.store.machines import log_groups
from tests.console.awsapi import test_masking
from tests.console.store.helpers import PASS, REGION, create, start

if TYPE_CHECKING:
    from collections.abc import Callable

    from console.models import Project
    from tests.console.awsapi.test_masking import Caller

caller = test_masking.caller
DAY_MS = 24 * 3600 * 1000
TODAY_MS = 1_800_000_000_000 // DAY_MS * DAY_MS
TALK = "/aws/lambda/talk"


def call(execution: Execution, at_ms: int, output: str = "", function: str = "talk") -> FunctionLog:
    """Store the log of one call."""
    return FunctionLog.objects.create(
        execution=execution,
        task=2,
        function=function,
        request=f"request-{at_ms - execution.start_ms}",
        started_ms=at_ms,
        duration_ms=10,
        memory_mb=0,
        memory_limit_mb=128,
        output=output,
    )


def made(project: Project, name: str, machine: str = "machine", day: int = 0) -> Execution:
    """Make an execution that began on a day."""
    row = project.statemachine_set.filter(name=machine).first()
    execution = start(row or create(project, PASS, machine), name=name)
    execution.start_ms = TODAY_MS + day * DAY_MS + 1000
    Execution.objects.filter(pk=execution.pk).update(start_ms=execution.start_ms)
    return execution


def ask(caller: Caller, action: str, **params: Any) -> dict[str, Any]:
    """Ask CloudWatch Logs."""
    answer: dict[str, Any] = caller.ask(action, service=services.LOGS, **params)
    return answer


def paged(caller: Caller, action: str, member: str, **params: Any) -> list[dict[str, Any]]:
    """Return what pages of one item have."""
    items: list[dict[str, Any]] = []
    token: dict[str, Any] = {}
    while True:
        page = ask(caller, action, limit=1, **params, **token)
        assert len(page[member]) <= 1
        items += page[member]
        if "nextToken" not in page:
            return items
        token = {"nextToken": page["nextToken"]}


def messages(page: dict[str, Any]) -> list[str]:
    """Return the texts of a page's lines."""
    return [event["message"] for event in page["events"]]


@pytest.mark.postgres_too
def test_a_group_is_there_as_soon_as_its_function_has_printed(
    project: Project, caller: Callable[[str], Caller]
) -> None:
    """Beside those that were made, by name, page by page; each project sees its own."""
    viewer, execution = caller("viewer"), made(project, "x")
    for name in ("talk", "Add", "zip"):
        call(execution, execution.start_ms + 7, function=name)
    actor = Actor("owner", "", "test")
    for name in ("/team/b", "/aws/lambda/empty", "/aws/lambda/talk"):
        log_groups.create_group(project, REGION, name, actor)
    other = type(project).objects.create(name="other", account_id="222222222222")
    theirs = made(other, "x")
    call(theirs, theirs.start_ms, function="theirs")
    groups = ask(viewer, "DescribeLogGroups")["logGroups"]
    names = [group["logGroupName"] for group in groups]
    functions = ["Add", "empty", "talk", "zip"]
    assert names == [*(f"/aws/lambda/{name}" for name in functions), "/team/b"]
    assert groups[0]["arn"] == f"arn:aws:logs:{REGION}:{project.account_id}:log-group:{names[0]}:*"
    assert groups[0]["creationTime"] == execution.start_ms + 7
    assert paged(viewer, "DescribeLogGroups", "logGroups") == groups
    part = ask(viewer, "DescribeLogGroups", logGroupNamePrefix="/aws/lambda/t")["logGroups"]
    assert [group["logGroupName"] for group in part] == [TALK]
    part = ask(viewer, "DescribeLogGroups", logGroupNamePattern="zi")["logGroups"]
    assert [group["logGroupName"] for group in part] == ["/aws/lambda/zip"]
    lines = ask(viewer, "FilterLogEvents", logGroupName=TALK)
    assert len(messages(lines)) == 3  # though a group of that name was made, as Terraform does


@pytest.mark.postgres_too
def test_streams_come_by_name_and_by_their_last_calls(
    project: Project, caller: Callable[[str], Caller]
) -> None:
    """In both directions, page by page, and of one day."""
    viewer = caller("viewer")
    first, second = made(project, "a"), made(project, "b", "other")
    third = made(project, "c", day=1)
    for execution, later in ((second, 1), (first, 5), (third, 9), (first, 20)):
        call(execution, TODAY_MS + DAY_MS * 2 + later)
    streams = ask(viewer, "DescribeLogStreams", logGroupName=TALK)["logStreams"]
    names = [stream["logStreamName"] for stream in streams]
    assert [name.partition("[$LATEST]")[2] for name in names] == [
        "machine/a",
        "other/b",
        "machine/c",
    ]
    assert streams[0]["firstEventTimestamp"] == TODAY_MS + DAY_MS * 2 + 5
    assert streams[0]["lastEventTimestamp"] == TODAY_MS + DAY_MS * 2 + 30
    of_talk: dict[str, Any] = {"logGroupName": TALK}
    for further, order in (
        ({}, [0, 1, 2]),
        ({"descending": True}, [2, 1, 0]),
        ({"orderBy": "LastEventTime"}, [1, 2, 0]),
        ({"orderBy": "LastEventTime", "descending": True}, [0, 2, 1]),
        ({"logStreamNamePrefix": names[2][:10]}, [2]),
        ({"logStreamNamePrefix": names[0][:-1]}, [0]),
    ):
        descriptions = paged(viewer, "DescribeLogStreams", "logStreams", **of_talk, **further)
        assert [names.index(stream["logStreamName"]) for stream in descriptions] == order, further
    refused = ask(
        viewer,
        "DescribeLogStreams",
        **of_talk,
        orderBy="LastEventTime",
        logStreamNamePrefix="2",
    )
    assert refused["__type"].endswith("InvalidParameterException")


def test_a_stream_is_read_from_either_end(
    project: Project, caller: Callable[[str], Caller]
) -> None:
    """A call that ends later stands behind what a reader has, though it began before."""
    viewer, execution = caller("viewer"), made(project, "a")
    call(execution, execution.start_ms + 100, "one\ntwo\n")
    call(execution, execution.start_ms + 200, "three\n", function="zip")
    group = {"logGroupIdentifier": f"arn:aws:logs:{REGION}:{project.account_id}:log-group:{TALK}"}
    (stream,) = ask(viewer, "DescribeLogStreams", **group)["logStreams"]
    of_stream = {**group, "logStreamName": stream["logStreamName"]}
    whole = ask(viewer, "GetLogEvents", **of_stream)
    assert messages(whole)[1:3] == ["one", "two"]
    assert [text.split()[0] for text in messages(whole)] == ["START", "one", "two", "END", "REPORT"]
    head = ask(viewer, "GetLogEvents", **of_stream, startFromHead=True, limit=2)
    assert messages(head) == messages(whole)[:2]
    rest = ask(viewer, "GetLogEvents", **of_stream, nextToken=head["nextForwardToken"])
    assert messages(rest) == messages(whole)[2:]
    tail = ask(viewer, "GetLogEvents", **of_stream, limit=2)
    assert messages(tail) == messages(whole)[-2:]
    before = ask(viewer, "GetLogEvents", **of_stream, limit=2, nextToken=tail["nextBackwardToken"])
    assert messages(before) == messages(whole)[1:3]
    end = ask(viewer, "GetLogEvents", **of_stream, nextToken=rest["nextForwardToken"])
    assert (messages(end), end["nextForwardToken"]) == ([], rest["nextForwardToken"])
    call(execution, execution.start_ms + 50, "late\n")
    late = ask(viewer, "GetLogEvents", **of_stream, nextToken=end["nextForwardToken"])
    assert "late" in messages(late)
    since = ask(viewer, "GetLogEvents", **of_stream, startTime=execution.start_ms + 101)
    assert messages(since)[0].startswith("END")


@pytest.mark.parametrize(
    "name", ["x", "2027/01/15/[$LATEST]machine/nobody", "2027/99/15/[$LATEST]machine/a"]
)
def test_a_stream_of_nobody_is_not_found(
    project: Project, caller: Callable[[str], Caller], name: str
) -> None:
    """Whatever its name looks like."""
    execution = made(project, "a")
    call(execution, execution.start_ms)
    answer = ask(caller("viewer"), "GetLogEvents", logGroupName=TALK, logStreamName=name)
    assert answer["__type"].endswith("ResourceNotFoundException")


@pytest.mark.postgres_too
def test_express_executions_of_one_name_share_a_stream(
    project: Project, caller: Callable[[str], Caller]
) -> None:
    """As the name of a stream says nothing else of them."""
    viewer = caller("viewer")
    machine = create(project, PASS, "fast")
    machine.type = "EXPRESS"
    machine.save()
    for number in range(2):
        execution = start_execution(machine, name="same", input="{}")
        call(execution, execution.start_ms, f"said {number}")
    (stream,) = ask(viewer, "DescribeLogStreams", logGroupName=TALK)["logStreams"]
    page = ask(viewer, "GetLogEvents", logGroupName=TALK, logStreamName=stream["logStreamName"])
    assert [text for text in messages(page) if text.startswith("said")] == ["said 0", "said 1"]


@pytest.mark.postgres_too
def test_an_editor_deletes_a_group_and_the_audit_says_so(
    project: Project, caller: Callable[[str], Caller]
) -> None:
    """Of this function and this project alone; a viewer may not."""
    execution = made(project, "a")
    call(execution, execution.start_ms)
    row = call(execution, execution.start_ms, function="zip")
    refused = ask(caller("viewer"), "DeleteLogGroup", logGroupName=TALK)
    assert refused["__type"].endswith("AccessDeniedException")
    assert FunctionLog.objects.count() == 2
    ask(caller("editor"), "DeleteLogGroup", logGroupName=TALK)
    assert list(FunctionLog.objects.all()) == [row]
    entry = AuditEntry.objects.get(action="logs:DeleteLogGroup")
    assert entry.target == TALK
    gone = ask(caller("owner"), "DeleteLogGroup", logGroupName=TALK)
    assert gone["__type"].endswith("ResourceNotFoundException")


def test_a_viewer_reads_masked_values_in_no_way(
    project: Project, caller: Callable[[str], Caller]
) -> None:
    """What the project hides is hidden in a stream, too."""
    project.masked = "$.card"
    project.save()
    machine = create(project, PASS)
    execution = start(machine, {"card": "4929-canary"}, "a")
    call(execution, execution.start_ms, "card 4929-canary\n")
    viewer, operator = caller("viewer"), caller("operator")
    (stream,) = ask(viewer, "DescribeLogStreams", logGroupName=TALK)["logStreams"]
    of_stream = {"logGroupName": TALK, "logStreamName": stream["logStreamName"]}
    assert "4929-canary" not in str(ask(viewer, "GetLogEvents", **of_stream))
    assert "card 4929-canary" in messages(ask(operator, "GetLogEvents", **of_stream))
    notes = AuditEntry.objects.filter(target=execution.arn, actor=operator.name)
    assert notes.exists()
