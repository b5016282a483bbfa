"""Log lines have the right content, and a page of them reads a bounded number of rows."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

import engine
from console import access
from console.awsapi import services
from console.errors import ErrorCode
from console.features.logs import lines, read, streams
from console.models import Execution, HistoryEvent, LogGroup, Project, Role
from console.store.executions import redrive
from console.store.executions.start import start_execution
from console.store.machines import log_groups, machines
from tests.console.store.helpers import REGION, ROLE, drain
from tests.refusals import raises_code

if TYPE_CHECKING:
    from console.models import StateMachine

GROUP = "/aws/vendedlogs/states/tests"
FAILS = json.dumps({"StartAt": "F", "States": {"F": {"Type": "Fail", "Error": "Bad"}}})
PASSES = json.dumps({"StartAt": "P", "States": {"P": {"Type": "Pass", "End": True}}})


def machine(project: Project, definition: str, name: str = "logging") -> StateMachine:
    """Create a machine that logs everything."""
    arn = f"arn:aws:logs:{REGION}:{project.account_id}:log-group:{GROUP}:*"
    configuration = {
        "level": "ALL",
        "includeExecutionData": True,
        "destinations": [{"cloudWatchLogsLogGroup": {"logGroupArn": arn}}],
    }
    return machines.create_machine(
        project,
        REGION,
        name=name,
        definition=definition,
        role_arn=ROLE,
        logging=json.dumps(configuration),
    )


def group(project: Project) -> LogGroup:
    """Return the group of the tests."""
    return log_groups.get_group(project, REGION, GROUP)


def test_a_name_that_begins_with_another_comes_first(project: Project) -> None:
    """A hyphen sorts before the slash behind the name of a state machine."""
    for name in ("orders", "orders-eu"):
        drain(start_execution(machine(project, PASSES, name), input="{}"))
    upwards = list(streams.streams_by_name(group(project)))
    names = [stream.name for stream in upwards]
    assert names == sorted(names)
    after = (upwards[0].span.machine_arn, *upwards[0].place)
    assert [each.name for each in streams.streams_by_name(group(project), after=after)] == names[1:]
    downwards = streams.streams_by_name(group(project), descending=True)
    assert [each.name for each in downwards] == names[::-1]


def only_stream(project: Project) -> streams.Stream:
    """Return the only stream there is."""
    (stream,) = streams.streams_by_name(group(project))
    return stream


def said(project: Project, **more: Any) -> list[dict[str, Any]]:
    """Return the lines of the only stream."""
    stream = only_stream(project)
    log_lines = read.stream_lines(group(project), stream, read.Range(), 1000, **more)
    return [json.loads(line.text) for line in log_lines]


COMPACT: dict[str, Any] = {"ensure_ascii": False, "separators": (",", ":")}


def said_of(here: LogGroup) -> list[dict[str, Any]]:
    """Return the lines of the stream that began first."""
    stream = next(streams.streams_by_name(here))
    return [json.loads(line.text) for line in read.stream_lines(here, stream, read.Range(), 1000)]


def test_a_line_counts_the_redrives_before_it(project: Project) -> None:
    """The first run says 0, what follows a redrive 1."""
    execution = drain(start_execution(machine(project, FAILS), input="{}"))
    redrive.redrive_execution(execution)
    drain(execution)
    counts = [(line["type"], line["redrive_count"]) for line in said(project)]
    redriven = next(place for place, count in enumerate(counts) if count[0] == "ExecutionRedriven")
    assert {count for _, count in counts[:redriven]} == {"0"}
    assert {count for _, count in counts[redriven:]} == {"1"}
    drain(start_execution(machine(project, FAILS), input="{}"))
    here, span = group(project), read.Range()
    ways = read.streams_from(here, span, "", None)
    everything = read.search_lines(here, ways, span, lambda _: True, 100).lines
    assert {line.text for line in everything} > {
        json.dumps(line, **COMPACT) for line in said_of(here)
    }
    newest = read.newest_lines(here, list(streams.streams_by_name(here)), 100)
    assert sorted(line.text for line in newest) == sorted(line.text for line in everything)


def test_a_long_payload_is_cut_and_says_so(project: Project) -> None:
    """As AWS's lines, which take 248 KB of it."""
    text = json.dumps("é" * 130_000, ensure_ascii=False)
    event = HistoryEvent(
        event_id=1,
        previous=0,
        at_ms=1,
        type="ExecutionStarted",
        details=json.dumps({"input": text, "roleArn": ROLE}),
    )
    details = json.loads(lines.log_line(event, "arn", 0, with_data=True))["details"]
    assert len(details["input"].encode()) <= 248 * 1024 < len(text.encode())
    assert details["inputDetails"] == {"truncated": True}


def test_every_failure_is_an_error_and_nothing_else() -> None:
    """The levels nest, and every event type has one."""
    assert (
        lines.logged_event_types("FATAL")
        < lines.logged_event_types("ERROR")
        < lines.logged_event_types("ALL")
        == set(engine.DETAILS)
    )
    assert not {
        kind for kind in lines.logged_event_types("ERROR") if kind.endswith(("Succeeded", "Exited"))
    }


def test_another_project_has_its_own_groups_and_streams(project: Project) -> None:
    """A group of the same name elsewhere has none of our streams, nor finds one by its name."""
    drain(start_execution(machine(project, PASSES), input="{}"))
    other = Project.objects.create(name="other", account_id="210987654321")
    with raises_code(ErrorCode.ResourceNotFoundException):
        log_groups.get_group(other, REGION, GROUP)
    log_groups.create_group(other, REGION, GROUP)
    theirs = group(other)
    assert list(streams.streams_by_name(theirs)) == []
    assert streams.find_stream(theirs, only_stream(project).name) is None


@pytest.mark.parametrize("action", ["CreateLogGroup", "DeleteLogGroup", "FilterLogEvents"])
def test_a_viewer_reads_logs_and_makes_no_groups(
    project: Project, django_user_model: Any, action: str
) -> None:
    """Reading is for everybody of the project, making and deleting for editors."""
    user = django_user_model.objects.create_user("ana")
    permission = services.LOGS.permission(action)
    access.authorize(access.Principal(user, project, Role.EDITOR), permission)
    viewer = access.Principal(user, project, Role.VIEWER)
    if action == "FilterLogEvents":
        access.authorize(viewer, permission)
    else:
        with pytest.raises(access.Denied):
            access.authorize(viewer, permission)


def test_a_page_of_streams_costs_the_same_for_many(project: Project) -> None:
    """One query for the routes and one for the streams, however many there are."""
    source = machine(project, PASSES)
    first = drain(start_execution(source, input="{}"))

    def queries() -> int:
        with CaptureQueriesContext(connection) as seen:
            assert list(islice(streams.streams_by_name(here), 3))
        return len(seen)

    here = group(project)
    few = queries()
    copies(first, 99)
    assert queries() == few == 2
    assert len(list(streams.streams_by_name(here))) == 100


def copies(execution: Execution, count: int) -> None:
    """Store further executions as this one."""
    events = list(HistoryEvent.objects.filter(execution_id=execution.pk))
    for number in range(count):
        row = Execution.objects.get(pk=execution.pk)
        row.pk, row.name, row.arn = None, f"copy-{number}", f"{execution.arn}-{number}"
        row.save()
        for event in events:
            copy = HistoryEvent(
                execution_id=row.pk,
                event_id=event.event_id,
                previous=event.previous,
                at_ms=event.at_ms,
                type=event.type,
                state=event.state,
                details=event.details,
            )
            copy.save(force_insert=True)


def test_a_search_in_small_pages_finds_each_line_once(project: Project) -> None:
    """Executions that started in the same millisecond are not mixed up at the end of a page."""
    copies(drain(start_execution(machine(project, PASSES), input="{}")), 6)
    here, places = group(project), []
    cursor: read.Cursor | None = None
    while True:
        ways = read.streams_from(here, read.Range(), "", cursor)
        page = read.search_lines(here, ways, read.Range(), lambda line: "State" in line, 3, cursor)
        places += [(line.stream.name, line.number) for line in page.lines]
        if page.cursor is None:
            break
        cursor = page.cursor
    assert len(places) == len(set(places)) == 14


@pytest.mark.postgres_too
def test_a_search_gives_way_after_many_lines(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page may be empty and have a token: the next one goes on behind what was read."""
    copies(drain(start_execution(machine(project, PASSES), input="{}")), 2)
    monkeypatch.setattr(read, "_MOST_READ", 5)
    here, span = group(project), read.Range()
    page = read.search_lines(
        here, read.streams_from(here, span, "", None), span, lambda _: False, 10
    )
    assert page.lines == []
    assert page.cursor is not None
    ways = read.streams_from(here, span, "", page.cursor)
    rest = read.search_lines(here, ways, span, lambda _: True, 10, page.cursor)
    assert len(rest.lines) == 5
    begun = min(line.stream.place for line in rest.lines)
    assert [line.number for line in rest.lines if line.stream.place == begun] == [2, 3, 4]


@pytest.mark.postgres_too
@pytest.mark.parametrize("prefix", ["", "states/log", "states/logging/20", "whole"])
def test_streams_are_found_by_the_beginning_of_their_name(project: Project, prefix: str) -> None:
    """Whatever part of a name is given; another machine's are left out."""
    drain(start_execution(machine(project, PASSES), input="{}"))
    drain(start_execution(machine(project, PASSES, "another"), input="{}"))
    names = [stream.name for stream in streams.streams_by_name(group(project))]
    assert [name.split("/")[1] for name in names] == ["another", "logging"]
    beginning = names[1] if prefix == "whole" else prefix
    listed_names = [
        stream.name for stream in streams.streams_by_name(group(project), prefix=beginning)
    ]
    assert listed_names == (names if not prefix else names[1:])
    before = [
        stream.name
        for stream in streams.streams_by_name(group(project), prefix="states/logging/2001-01-01")
    ]
    assert before == []


def test_a_made_up_stream_name_finds_nothing(project: Project) -> None:
    """The name must be the one that the execution's stream has."""
    drain(start_execution(machine(project, PASSES), input="{}"))
    stream = only_stream(project)
    assert streams.find_stream(group(project), stream.name) == replace(stream)
    for name in (
        "x",
        stream.name[:-1] + ("e" if stream.name.endswith("f") else "f"),
        stream.name.replace("logging", "other"),
        "states/logging/2026-01-01-00-00/" + "f" * 21,
    ):
        assert streams.find_stream(group(project), name) is None
