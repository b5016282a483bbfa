"""Histories from elsewhere: read, kept, looked at, and never touched."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

import pytest

from console.errors import ValidationException
from console.models import AuditEntry, Execution, HistoryEvent, RunRow, Timer
from console.recordings.printed import read_printed
from tests.console.store.helpers import create, drain, start
from tests.console.web.execution.test_iterations import demo
from tests.console.web.helpers import text

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.test import Client

    from console.models import Project

ARN = "arn:aws:states:eu-west-1:999999999999:execution:orders:run-7"
WORK = {"Type": "Task", "Resource": "arn:aws:lambda:eu-west-1:999999999999:function:f", "End": True}
DEFINITION = {
    "StartAt": "P",
    "States": {
        "P": {
            "Type": "Parallel",
            "Next": "Say",
            "Branches": [{"StartAt": "B", "States": {"B": WORK}}],
        },
        "Say": {"Type": "Pass", "End": True},
    },
}


def line(number: int, previous: int, kind: str, **details: Any) -> dict[str, Any]:
    """Return an event as the CLI prints it."""
    stamp = f"2026-01-02T03:04:{number:02}.500000+01:00"
    told = {"timestamp": stamp, "type": kind, "id": number, "previousEventId": previous}
    return {**told, **details}


def entered(name: str, data: str) -> dict[str, Any]:
    """Return the details of a state's entry."""
    return {"stateEnteredEventDetails": {"name": name, "input": data}}


def exited(name: str, data: str) -> dict[str, Any]:
    """Return the details of a state's exit."""
    return {"stateExitedEventDetails": {"name": name, "output": data}}


BEGUN = {"input": '{"a": 1}', "inputDetails": {"truncated": False}, "roleArn": "r"}
HISTORY = {
    "events": [
        line(1, 0, "ExecutionStarted", executionStartedEventDetails=BEGUN),
        line(2, 0, "ParallelStateEntered", **entered("P", '{"a": 1}')),
        line(3, 2, "ParallelStateStarted"),
        line(4, 3, "TaskStateEntered", **entered("B", '{"a": 1}')),
        line(
            5,
            4,
            "LambdaFunctionScheduled",
            lambdaFunctionScheduledEventDetails={"resource": WORK["Resource"]},
        ),
        line(6, 5, "LambdaFunctionStarted"),
        line(7, 6, "LambdaFunctionSucceeded", lambdaFunctionSucceededEventDetails={"output": "5"}),
        line(8, 7, "TaskStateExited", **exited("B", "5")),
        line(9, 8, "ParallelStateSucceeded"),
        line(10, 8, "ParallelStateExited", **exited("P", "[5]")),
        line(11, 10, "PassStateEntered", **entered("Say", "[5]")),
        line(12, 11, "PassStateExited", **exited("Say", "[5]")),
        line(13, 12, "ExecutionSucceeded", executionSucceededEventDetails={"output": "[5]"}),
    ]
}
GIVEN = {
    "history": json.dumps(HISTORY),
    "machine": json.dumps({"name": "orders", "definition": json.dumps(DEFINITION)}),
    "execution": json.dumps({"executionArn": ARN, "name": "run-7"}),
}


def brought(client: Client, **fields: str) -> str:
    """Import and return the address of the page."""
    answer = client.post("/import/", {**GIVEN, **fields})
    assert answer.status_code == 302, text(answer, answer.status_code)
    return str(answer["Location"])


def test_an_imported_history_is_seen_with_the_same_page(project: Project, client: Client) -> None:
    """Summary, colours, events and panel come from what was pasted; an audit row is written."""
    del project
    path = brought(client)
    assert path.startswith("/machines/orders~import-")
    context = client.get(f"{path}?step=B").context
    assert {summary.status.word for summary in context["graph"].painting.summaries.values()} == {
        "Succeeded"
    }
    shown = text(client.get(path))
    for words in ("run-7", ARN, "read-only", "LambdaFunctionScheduled", "1 to 13 of 13"):
        assert words in shown
    assert "data-poll" not in shown
    assert AuditEntry.objects.filter(action="ImportExecution").count() == 1
    states = HistoryEvent.objects.filter(type="ParallelStateSucceeded").values_list("state")
    assert list(states) == [("P",)]
    at_ms = HistoryEvent.objects.get(event_id=1).at_ms
    assert at_ms == 1_767_319_441_500  # 03:04:01.5 at +01:00


def test_a_function_that_could_not_be_scheduled_was_tried(project: Project, client: Client) -> None:
    """AWS may write that instead of LambdaFunctionScheduled; each is an attempt that ended."""
    del project
    denied = {"lambdaFunctionScheduleFailedEventDetails": {"error": "Denied", "cause": "no role"}}
    events = [
        *HISTORY["events"][:4],
        line(5, 4, "LambdaFunctionScheduleFailed", **denied),
        line(6, 5, "LambdaFunctionScheduleFailed", **denied),
        line(7, 6, "ParallelStateFailed"),
        line(8, 7, "ExecutionFailed", executionFailedEventDetails={"error": "Denied"}),
    ]
    shown = client.get(f"{brought(client, history=json.dumps({'events': events}))}?step=B").context
    attempts = shown["panel"].shown.attempts
    assert [
        (attempt.number, attempt.tone, attempt.error, attempt.spent) for attempt in attempts
    ] == [
        (1, "failed", "Denied", "0 ms"),
        (2, "failed", "Denied", "0 ms"),
    ]
    assert attempts[0].wait == "1.0 s"
    statuses = {summary.status.word for summary in shown["summaries"].values()}
    assert "Failed" in statuses


def test_nothing_can_touch_what_was_imported(project: Project, client: Client) -> None:
    """It is in no list, has no run, and is not stopped or redriven."""
    unfinished = json.dumps({"events": HISTORY["events"][:5]})
    path = brought(client, history=unfinished)
    assert not Execution.objects.exists()
    assert not RunRow.objects.exists()
    execution = Execution.imports.get(project=project)
    assert (execution.status, execution.stop_ms is not None) == ("UNFINISHED", True)
    assert "run-7" not in text(client.get("/executions/"))
    assert "run-7" in text(client.get("/import/"))
    for action in ("stop", "redrive"):
        assert client.get(f"{path}{action}/").status_code == 403
        assert client.post(f"{path}{action}/").status_code == 403
    assert "Stop execution" not in text(client.get(path))
    assert "so far" in text(client.get(f"{path}_step?step=B"))


@pytest.mark.postgres_too
def test_what_a_server_exports_it_can_import(project: Project, client: Client) -> None:
    """The JSON file of the event table comes back as the same picture, iterations and all."""
    here = drain(start(create(project, demo((1, 3))), {"items": list(range(5))}, "x"))
    Timer.objects.update(due_ms=0)
    drain(here)
    base = "/machines/machine/executions/x/"
    file = io.BytesIO(client.get(f"{base}events.json").content)
    file.name = "history.json"
    form = {"uploads": [file], "machine": here.definition.text}
    path = str(client.post("/import/", form)["Location"])
    ours, theirs = (client.get(f"{address}?step=Break").context for address in (base, path))
    said = [
        {node: summary.label for node, summary in it["summaries"].items()} for it in (ours, theirs)
    ]
    assert said[0] == said[1]
    assert (
        ours["panel"].shown.iteration == theirs["panel"].shown.iteration == "#3"
    )  # of the last attempt
    histories = [
        list(
            HistoryEvent.objects.filter(execution_id=execution.pk)
            .order_by("event_id")
            .values_list("event_id", "state")
        )
        for execution in (here, Execution.imports.get())
    ]
    assert histories[0] == histories[1]


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("history", "{", "it is not JSON"),
        ("history", "[]", "is not a JSON object"),
        ("history", "{}", "no “events”"),
        ("history", json.dumps({"events": HISTORY["events"][1:]}), "event 1 is missing"),
        ("history", json.dumps({"events": [{"id": 1}]}), "this is no event"),
        ("history", json.dumps({"events": [line(1, 0, "Nope")]}), "this is no event"),
        ("machine", "{}", "neither “definition” nor “StartAt”"),
        ("machine", '{"definition": 1}', "is not a text"),
        ("machine", '{"definition": "x"}', "The definition: it is not JSON"),
        ("execution", "nope", "The execution: it is not JSON"),
    ],
)
def test_what_cannot_be_read_is_told(
    project: Project, client: Client, field: str, value: str, words: str
) -> None:
    """The message names which of the three is wrong; what was pasted stays in the form."""
    del project
    answer = client.post("/import/", {**GIVEN, field: value})
    assert words in text(answer, 422)
    assert not Execution.imports.exists()
    assert "run-7" in text(answer, 422) or field == "execution"


def test_only_who_may_run_may_import(
    signed_in: Callable[[str], Client], client: Client, project: Project
) -> None:
    """A viewer looks at imports but makes and deletes none; another project sees nothing."""
    path = brought(client)
    number = Execution.imports.get(project=project).pk
    viewer = signed_in("viewer")
    assert viewer.get(path).status_code == 200
    assert viewer.post("/import/", GIVEN).status_code == 403
    assert viewer.post(f"/import/{number}/delete/").status_code == 403
    client.post(f"/import/{number}/delete/")
    assert client.get(path).status_code == 404
    assert not HistoryEvent.objects.exists()


def test_a_history_is_put_in_order() -> None:
    """Printed newest first, it is the same history."""
    reverse = json.dumps({"events": HISTORY["events"][::-1]})
    read = read_printed(reverse, GIVEN["machine"])
    assert [event.id for event in read.events] == list(range(1, 14))
    with pytest.raises(ValidationException, match="25,000"):
        read_printed(json.dumps({"events": [line(1, 0, "Nope")] * 25_001}), GIVEN["machine"])


def file_of(name: str, content: str) -> io.BytesIO:
    """Return a file as a browser sends it."""
    file = io.BytesIO(content.encode())
    file.name = name
    return file


def test_files_are_told_apart_by_name_or_content(project: Project, client: Client) -> None:
    """In any order; a definition alone is a state machine; a file comes before a pasted text."""
    del project
    files = [
        file_of("execution.json", GIVEN["execution"]),
        file_of("orders.asl.json", json.dumps(DEFINITION)),
        file_of("download (3).json", GIVEN["history"]),
    ]
    answer = client.post("/import/", {"uploads": files, "history": "{"})
    shown = text(client.get(str(answer["Location"])))
    assert "run-7" in shown
    assert ARN in shown


@pytest.mark.parametrize(
    ("names", "content", "words"),
    [
        (("notes.json",), '{"a": 1}', "“notes.json” is not AWS CLI output of"),
        (("notes.json",), "[]", "“notes.json” is not AWS CLI output of"),
        (("notes.txt",), "hello", "“notes.txt” is not JSON."),
        (("machine.json", "b.json"), GIVEN["machine"], "“b.json” is a second state machine"),
        (("history.json",), "hello", "The history: it is not JSON"),
    ],
)
def test_a_file_that_fits_nowhere_is_named(
    project: Project, client: Client, names: tuple[str, ...], content: str, words: str
) -> None:
    """And what was pasted is still there."""
    del project
    files = [file_of(name, content) for name in names]
    shown = text(client.post("/import/", {"uploads": files, "machine": GIVEN["machine"]}), 422)
    assert words in shown
    assert '"name": "orders"' in shown


def test_what_is_missing_or_wrong_is_told_at_its_field(project: Project, client: Client) -> None:
    """Not that an empty text is no JSON; the fields that are right are not marked."""
    del project
    answer = client.post("/import/", {**GIVEN, "history": ""})
    assert "The history: it is missing." in text(answer, 422)
    wrong = client.post("/import/", {**GIVEN, "machine": '{"definition": "x"}'})
    shown = text(wrong, 422)
    assert 'id="machine-error"' in shown
    assert 'id="history-error"' not in shown


def test_an_import_is_deleted_after_a_question(project: Project, client: Client) -> None:
    """The button that deletes is folded away until the bin was pressed."""
    del project
    brought(client)
    shown = text(client.get("/import/"))
    question = shown.split('<details class="confirm">')[1].split("</details>")[0]
    assert "/delete/" in question
    assert "/delete/" not in shown.replace(question, "")


def test_the_lines_to_print_it_are_there_to_copy(project: Project, client: Client) -> None:
    """One for each file, in the order of the form."""
    del project
    lines = client.get("/import/").context["commands"].splitlines()
    assert [line.rpartition(" ")[2] for line in lines[1:]] == [
        "history.json",
        "machine.json",
        "execution.json",
    ]


def test_an_imported_map_may_lie_at_the_time_0(project: Project, client: Client) -> None:
    """As where somebody has taken the times out of a history: its iterations have ended then."""
    del project
    inner = {"StartAt": "B", "States": {"B": {"Type": "Pass", "End": True}}}
    state = {"Type": "Map", "ItemProcessor": inner, "End": True}
    machine = {"name": "orders", "definition": {"StartAt": "M", "States": {"M": state}}}
    events = [
        line(1, 0, "ExecutionStarted", executionStartedEventDetails=BEGUN),
        line(2, 0, "MapStateEntered", **entered("M", "[1, 2]")),
        line(3, 2, "MapStateStarted", mapStateStartedEventDetails={"length": 2}),
    ]
    for index in range(2):
        about, first = {"name": "M", "index": index}, 4 + 4 * index
        succeeded = {"mapIterationSucceededEventDetails": about}
        events += [
            line(first, 3, "MapIterationStarted", mapIterationStartedEventDetails=about),
            line(first + 1, first, "PassStateEntered", **entered("B", "1")),
            line(first + 2, first + 1, "PassStateExited", **exited("B", "1")),
            line(first + 3, first + 2, "MapIterationSucceeded", **succeeded),
        ]
    events += [
        line(12, 11, "MapStateSucceeded"),
        line(13, 12, "MapStateExited", **exited("M", "[1, 1]")),
        line(14, 13, "ExecutionSucceeded", executionSucceededEventDetails={"output": "[1, 1]"}),
    ]
    events = [{**event, "timestamp": "1970-01-01T00:00:00Z"} for event in events]
    machine["definition"] = json.dumps(machine["definition"])
    fields = {"history": json.dumps({"events": events}), "machine": json.dumps(machine)}
    rows = client.get(f"{brought(client, **fields)}?view=steps").context["steps"].rows
    [summary] = [row for row in rows if row.kind == "Iterations"]
    assert (summary.entered_ms, summary.left_ms, summary.took) == (0, 0, 0)


HALF = "a\ud800b"


@pytest.mark.parametrize(
    "fields",
    [
        {"execution": {"executionArn": HALF, "name": "run-7"}},
        {"execution": {"executionArn": ARN, "name": "run-7", "stateMachineArn": HALF}},
        {"machine": {"definition": json.dumps(DEFINITION), "roleArn": HALF}},
        {
            "machine": {
                "definition": json.dumps({**DEFINITION, "Comment": HALF}, ensure_ascii=False)
            }
        },
    ],
)
def test_half_a_character_in_a_file(
    project: Project, client: Client, fields: dict[str, Any]
) -> None:
    """No database stores it, so another one is in its place."""
    del project
    path = brought(client, **{name: json.dumps(value) for name, value in fields.items()})
    assert client.get(path).status_code == 200


@pytest.mark.parametrize(
    ("number", "change", "problem"),
    [
        (5, {"type": HALF}, "this is no event (KeyError"),
        (4, {"stateEnteredEventDetails": {"name": "B", "input": {}}}, "input: got dict"),
        (4, {"stateEnteredEventDetails": {"name": 5, "input": "1"}}, "name: got int"),
        (13, {"executionSucceededEventDetails": {"output": [5]}}, "output: got list"),
        (7, {"lambdaFunctionSucceededEventDetails": {"output": True}}, "output: got bool"),
    ],
)
def test_an_event_whose_details_are_no_text(
    project: Project, client: Client, number: int, change: dict[str, Any], problem: str
) -> None:
    """It is refused, instead of a page that fails later."""
    del project
    history = json.loads(GIVEN["history"])
    history["events"][number - 1] |= change
    answer = client.post("/import/", {**GIVEN, "history": json.dumps(history)})
    assert problem in text(answer, 422)
    assert not Execution.imports.exists()
