"""What a function prints stands on the panel of its step, masked, for a while."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import pytest

from console.db import clock
from console.features.logs import function_log_store as function_logs
from console.features.logs.function_log_writer import LOGS
from console.features.logs.models import FunctionLog
from console.functions import pool
from console.models import Execution
from console.store.executions import retention
from tests.console.store.helpers import create, ended, function, one, start, types
from tests.console.web.helpers import text
from tests.waiting import PATIENCE_S, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from django.test import Client
    from pytest_django.fixtures import Settings

    from console.models import Project
    from console.worker import Embedded

CARD = "4929-canary-7831"
TALK = """
import json, logging
calls = 0
def talk(event, context):
    global calls
    calls += 1
    print("<b>paying with", event["card"]["number"], "</b>")
    print(json.dumps({"card": {"number": 98127634}, "token": event.get("token")}))
    logging.getLogger().error("for %s", event["order"])
    if calls < event.get("good", 1):
        raise ConnectionError("not yet")
    return {"paid": True}
"""
EVENT = {"card": {"number": CARD}, "order": "o-77"}


@pytest.fixture
def talk(settings: Settings, tmp_path: Path) -> Iterator[Path]:
    """Register the function."""
    settings.DATA_DIR = tmp_path
    settings.STATEYARD_FUNCTION_PROCESSES = 2
    settings.STATEYARD_FUNCTIONS = {"talk": "talking:talk"}
    (tmp_path / "talking.py").write_text(TALK, encoding="utf-8")
    yield tmp_path
    pool._current.close()


def run(project: Project, event: Any, definition: dict[str, Any] | None = None) -> Execution:
    """Run the function once; its log is written."""
    retry = [{"ErrorEquals": ["ConnectionError"], "IntervalSeconds": 1}]
    machine = create(project, definition or one("Pay", **function("talk"), Retry=retry))
    execution = ended(start(machine, event), 60)
    assert execution.status == "SUCCEEDED", execution.cause
    LOGS.flush(20)
    return execution


def logs_page(client: Client, execution: Execution, step: str = "Pay", tab: str = "logs") -> str:
    """Return the page with the tab of the logs."""
    address = f"/machines/{execution.state_machine.name}/executions/{execution.name}/"
    return text(client.get(address, {"step": step, "tab": tab}))


@pytest.mark.usefixtures("talk")
def test_the_panel_shows_the_log_of_each_attempt(
    project: Project, worker: Embedded, client: Client
) -> None:
    """With Lambda's lines around it, and nothing of it is markup."""
    del worker
    execution = run(project, {**EVENT, "good": 2})
    shown = logs_page(client, execution)
    first, second = FunctionLog.objects.filter(execution=execution).order_by("pk")
    for log in (first, second):
        assert f"START RequestId: {log.request} Version: $LATEST" in shown
        assert f"END RequestId: {log.request}" in shown
        assert f"REPORT RequestId: {log.request}\tDuration: {log.duration_ms:.2f} ms" in shown
    assert "attempt 1" in shown
    assert "attempt 2" in shown
    assert f"<b>paying with {CARD} </b>" in shown
    address = f"/machines/machine/executions/{execution.name}/?step=Pay&tab=logs"
    assert "<b>paying" not in client.get(address).content.decode()
    assert f"{first.request}\tfor o-77" in shown
    assert "[ERROR] ConnectionError: not yet" in shown
    assert first.error == "ConnectionError"
    assert "Init Duration" in shown
    assert first.init_ms is not None
    assert second.init_ms is None


@pytest.mark.usefixtures("talk")
def test_masked_values_are_masked_in_logs(
    project: Project, worker: Embedded, signed_in: Callable[[str], Client]
) -> None:
    """Those of the payloads wherever they stand, and lines of JSON by their places."""
    del worker
    project.masked = "$.card.number"
    project.save()
    execution = run(project, EVENT)
    shown = logs_page(signed_in("viewer"), execution)
    assert CARD not in shown
    assert "98127634" not in shown
    assert "for o-77" in shown
    assert "(masked)" in shown


@pytest.mark.usefixtures("talk")
def test_no_log_shows_a_task_token(project: Project, worker: Embedded, client: Client) -> None:
    """A function that waits for a callback may print it."""
    del worker
    state = {
        "Type": "Task",
        "Resource": "arn:aws:states:::lambda:invoke.waitForTaskToken",
        "TimeoutSeconds": 3600,
        "Parameters": {
            "FunctionName": "talk",
            "Payload": {"card.$": "$.card", "order": "o", "token.$": "$$.Task.Token"},
        },
    }
    execution = start(create(project, one("Pay", **state)), EVENT)

    def called() -> bool:
        assert not {"TaskSubmitFailed", "TaskFailed"} & set(types(execution))
        return FunctionLog.objects.filter(execution=execution).exists()

    wait_until(called, 10 * PATIENCE_S)  # the call begins a process, which may be begun again
    log = FunctionLog.objects.get(execution=execution)
    token = json.loads(log.output.splitlines()[1])["token"]
    assert len(token) > 20
    shown = logs_page(client, Execution.objects.get(pk=execution.pk))
    assert token not in shown


SHARED = """
import asyncio, logging, sys, threading, time
both = threading.Barrier(2)
def talk(event, context):
    print("this is", event["order"])
    both.wait(30)
    sys.stderr.write("stderr of %s\\n" % event["order"])
    both.wait(30)
    logging.getLogger("app").error("logged by %s", event["order"])
    loop = asyncio.new_event_loop()
    loop.run_until_complete(later(event["order"]))
    loop.run_until_complete(loop.shutdown_default_executor())
    loop.close()
    if event.get("bad"):
        raise ValueError("no good")
    return {"paid": True}
async def later(order):
    await asyncio.to_thread(print, "later", order)
def silent(event, context):
    return {"paid": True}
"""


@pytest.fixture
def shared(talk: Path, settings: Settings) -> None:
    """Register functions that share the process of the server."""
    (talk / "sharing.py").write_text(SHARED, encoding="utf-8")
    settings.STATEYARD_FUNCTIONS = {
        name: {"handler": f"sharing:{name}", "process": "shared"} for name in ("talk", "silent")
    }


@pytest.mark.usefixtures("shared")
def test_calls_that_share_the_process_have_a_log_each(
    project: Project, worker: Embedded, client: Client, capfd: pytest.CaptureFixture[str]
) -> None:
    """Also while they run at once; nothing of it is in the server's own output."""
    del worker
    machine = create(project, one("Pay", **function("talk")))
    started = [
        start(machine, {"order": "o-1"}),
        start(machine, {"order": "o-2", "bad": True}),
    ]
    good, bad = (ended(execution, 60) for execution in started)
    assert (good.status, bad.status) == ("SUCCEEDED", "FAILED"), good.cause
    LOGS.flush(20)
    for execution, order in ((good, "o-1"), (bad, "o-2")):
        log = FunctionLog.objects.get(execution=execution)
        lines = log.output.splitlines()
        assert lines[:2] == [f"this is {order}", f"stderr of {order}"]
        assert lines[2].startswith("[ERROR]\t")
        assert lines[2].endswith(f"{log.request}\tlogged by {order}")
        assert lines[3] == f"later {order}"
        shown = logs_page(client, execution)
        assert f"START RequestId: {log.request} Version: $LATEST" in shown
        assert f"this is {order}" in shown
    assert lines[4] == "[ERROR] ValueError: no good"
    assert json.loads(bad.cause or "")["requestId"] == log.request
    sys.stdout.write("the server's own\n")
    printed = "".join(capfd.readouterr())
    assert "the server's own" in printed
    assert "o-1" not in printed


@pytest.mark.usefixtures("shared")
def test_a_silent_call_that_shares_the_process_writes_no_row(
    project: Project, worker: Embedded, client: Client
) -> None:
    """It takes less time than the row would."""
    del worker
    execution = run(project, EVENT, one("Pay", **function("silent")))
    assert not FunctionLog.objects.exists()
    assert "No log." in logs_page(client, execution)


@pytest.mark.usefixtures("talk")
def test_nobody_else_sees_a_log(project: Project, worker: Embedded, django_user_model: Any) -> None:
    """Neither somebody without a role nor somebody who is not signed in."""
    from django.test import Client

    del worker
    execution = run(project, EVENT)
    stranger = Client()
    address = f"/machines/machine/executions/{execution.name}/?step=Pay&tab=logs"
    assert CARD not in stranger.get(address).content.decode()
    stranger.force_login(django_user_model.objects.create_user("stranger"))
    assert CARD not in stranger.get(address).content.decode()


def test_only_tasks_have_the_tab(project: Project, worker: Embedded, client: Client) -> None:
    """And one without a log says where logs come from."""
    del worker
    states = {
        "Pass": {"Type": "Pass", "Next": "Sum"},
        "Sum": {
            **function("sum"),
            "Catch": [{"ErrorEquals": ["States.ALL"], "Next": "End"}],
            "Next": "End",
        },
        "End": {"Type": "Succeed"},
    }
    execution = ended(start(create(project, {"StartAt": "Pass", "States": states})))
    assert 'data-tab="logs"' not in logs_page(client, execution, "Pass")
    shown = logs_page(client, execution, "Sum")
    assert 'data-tab="logs"' in shown
    assert "No log." in shown


@pytest.mark.postgres_too
@pytest.mark.usefixtures("talk")
def test_logs_go_with_the_execution_or_after_a_week(project: Project, worker: Embedded) -> None:
    """A row of an execution that is gone is never written."""
    del worker
    execution = run(project, EVENT)
    old = FunctionLog.objects.get(execution=execution)
    old.pk, old.started_ms = None, clock.now_ms() - function_logs.KEPT_MS - 1
    late = FunctionLog(
        execution_id=execution.pk + 1000,
        task=1,
        started_ms=1,
        duration_ms=1,
        memory_mb=0,
        memory_limit_mb=128,
    )
    function_logs.insert_logs([old, late])
    assert FunctionLog.objects.count() == 2
    function_logs.remove_old_logs()
    assert FunctionLog.objects.count() == 1
    retention.prune(retention.RetentionScope(clock.now_ms() + 1))
    assert FunctionLog.objects.count() == 0
