"""The worker brings every execution to its end, in time, also after a restart."""

from __future__ import annotations

import json
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import TYPE_CHECKING, Any

import pytest

from console.models import Execution, HistoryEvent, InboxMessage, Project, RunRow, TaskRow, Timer
from console.store.executions import step
from console.store.tasks import activities
from console.worker import Embedded
from tests.console.store.helpers import REGION, create, ended, function, one, start, types

if TYPE_CHECKING:
    from collections.abc import Iterator


def double(event: int, context: object) -> int:
    """A function of the tests."""
    del context
    return event * 2


def refuse(event: object, context: object) -> None:
    """A function of the tests that always fails."""
    del event, context
    raise LookupError("nothing there")


@pytest.fixture(autouse=True)
def functions(settings: Any) -> None:
    """Register the functions above."""
    here = "tests.console.worker.test_embedded"
    settings.STATEYARD_FUNCTIONS = {
        "double": f"{here}:double",
        "refuse": f"{here}:refuse",
        "activity:half": f"{here}:double",
    }


def test_function_result_is_the_output(project: Project, worker: Embedded) -> None:
    """A registered callable does the work of a Lambda ARN."""
    del worker
    assert ended(start(create(project, one("T", **function("double"))), 21)).output == "42"


def test_exception_becomes_the_error(project: Project, worker: Embedded) -> None:
    """Error is the exception's class, cause the report that Lambda would give."""
    del worker
    execution = ended(start(create(project, one("T", **function("refuse")))))
    assert execution.error == "LookupError"
    report = json.loads(str(execution.cause))
    assert (report["errorMessage"], report["errorType"]) == ("nothing there", "LookupError")


def test_unknown_function_is_told_as_lambda_does(project: Project, worker: Embedded) -> None:
    """A name nobody registered fails the task."""
    del worker
    execution = ended(start(create(project, one("T", **function("nobody")))))
    assert execution.error == "Lambda.ResourceNotFoundException"


def test_builtin_activity_worker(project: Project, worker: Embedded) -> None:
    """A callable registered for an activity works its tasks."""
    del worker
    arn = activities.create_activity(project, REGION, "half").arn
    execution = ended(start(create(project, one("A", Type="Task", Resource=arn)), 4))
    assert execution.output == "8"
    assert "ActivityStarted" in types(execution)


def test_wait_ends_on_time(project: Project, worker: Embedded) -> None:
    """Never early: how late is measured by the check ``timers`` of tests.chaos."""
    del worker
    execution = ended(start(create(project, one("W", Type="Wait", Seconds=1))))
    events = HistoryEvent.objects.filter(execution_id=execution.pk)
    moments = dict(events.values_list("type", "at_ms"))
    assert moments["WaitStateExited"] - moments["WaitStateEntered"] >= 1000


def test_task_times_out(project: Project, worker: Embedded) -> None:
    """A callback nobody answers ends in States.Timeout after TimeoutSeconds."""
    del worker
    activities.create_activity(project, REGION, "slow")
    arn = "arn:aws:states:us-east-1:123456789012:activity:slow"
    definition = one("A", Type="Task", Resource=arn, TimeoutSeconds=1)
    execution = start(create(project, definition))
    deadline = time.monotonic() + 5
    from console.store.tasks import claim

    while claim.take_activity_task(arn) is None:
        assert time.monotonic() < deadline
    assert ended(execution).error == "States.Timeout"


def test_machine_times_out_exactly(project: Project, worker: Embedded) -> None:
    """StopDate is startDate plus TimeoutSeconds; no error is shown."""
    del worker
    definition = one("W", Type="Wait", Seconds=60) | {"TimeoutSeconds": 1}
    execution = ended(start(create(project, definition)))
    assert (execution.status, execution.error) == ("TIMED_OUT", None)
    assert execution.stop_ms == execution.start_ms + 1000


def test_what_a_dead_process_left_is_finished(project: Project) -> None:
    """Rows alone are enough.

    A new worker finds overdue timers, half-done calls and started runs.
    """
    waiting = start(create(project, one("W", Type="Wait", Seconds=60), "waits"))
    calling = start(create(project, one("T", **function("double")), "calls"), 1)
    fresh = start(create(project, one("P", Type="Pass"), "fresh"))
    for execution in (waiting, calling):
        while step.step_execution(execution.pk):
            pass
    Timer.objects.update(due_ms=1)
    TaskRow.objects.update(status="started")
    assert fresh.status == "RUNNING"
    worker = Embedded()
    worker.start()
    try:
        assert [ended(execution).status for execution in (waiting, calling, fresh)] == [
            "SUCCEEDED"
        ] * 3
    finally:
        worker.stop()


def test_nothing_is_left_over(project: Project, worker: Embedded) -> None:
    """Fifty executions of several shapes: all end, no timer, message or open task stays."""
    del worker
    branches = [one("A", **function("double")), one("B", Type="Wait", Seconds=1)]
    shapes = [
        create(project, one("P", Type="Parallel", Branches=branches), "parallel"),
        create(project, one("M", Type="Map", ItemProcessor=one("I", **function("double"))), "map"),
        create(project, one("T", **function("refuse")), "fails"),
    ]
    started = [start(shapes[n % 3], [1, 2] if n % 3 == 1 else 1) for n in range(51)]
    statuses = [ended(execution, 30).status for execution in started]
    assert statuses == ["SUCCEEDED", "SUCCEEDED", "FAILED"] * 17
    assert not Timer.objects.exists()
    assert not InboxMessage.objects.exists()
    assert not TaskRow.objects.exclude(status="closed").exists()


class Function(BaseHTTPRequestHandler):
    """A function behind the Lambda invoke protocol."""

    def do_POST(self) -> None:
        """Answer the event, or an error when it says so."""
        event = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        failing = isinstance(event, dict) and "fail" in event
        answer = {"errorType": "Custom", "errorMessage": "no"} if failing else {"got": event}
        body = json.dumps(answer).encode()
        self.send_response(200)
        if failing:
            self.send_header("X-Amz-Function-Error", "Unhandled")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def endpoint() -> Iterator[str]:
    """The address of a function on a real HTTP server."""
    server = HTTPServer(("127.0.0.1", 0), Function)
    Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


def test_function_behind_http(
    project: Project, worker: Embedded, endpoint: str, settings: Any
) -> None:
    """A URL is called with the Lambda invoke protocol; a function error is an error."""
    del worker
    settings.STATEYARD_FUNCTIONS = {"remote": endpoint}
    machine = create(project, one("T", **function("remote")))
    assert json.loads(str(ended(start(machine, 5)).output)) == {"got": 5}
    failed: Execution = ended(start(machine, {"fail": 1}))
    assert (failed.error, json.loads(str(failed.cause))["errorMessage"]) == ("Custom", "no")


def test_what_a_later_version_wrote_waits_for_it(project: Project) -> None:
    """Three starts of this version and a stop do nothing to it; the later version goes on."""
    execution = start(create(project, one("W", Type="Wait", Seconds=1)))
    while step.step_execution(execution.pk):
        pass
    snapshot = RunRow.objects.get(pk=execution.pk).snapshot
    RunRow.objects.update(snapshot=json.dumps({**json.loads(snapshot), "format": 1_000_000}))
    step.kept_runs.forget(execution.pk)  # type: ignore[attr-defined]
    Timer.objects.update(due_ms=1)
    for _ in range(4):
        worker = Embedded()
        worker.start()
        worker.sweep()
        time.sleep(0.2)
        worker.stop()
    execution.refresh_from_db()
    assert (execution.status, RunRow.objects.get().failures) == ("RUNNING", 0)
    RunRow.objects.update(snapshot=snapshot)  # as the later version reads it
    worker = Embedded()
    worker.start()
    assert ended(execution).status == "SUCCEEDED"
    worker.stop()
