"""A registered function runs in a process of its own, and cannot harm the server."""

from __future__ import annotations

import ast
import json
import os
import signal
import subprocess
import sys
import threading
import venv
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from console.functions import pool, process_output, runner, target_check
from console.functions.output import MOST_OUTPUT
from console.integrations import function, targets
from console.integrations.outcome import Succeeded
from console.store.tasks.workers import is_running
from tests.console.integrations.function_calls import (
    call,
    find_pythons,
    report,
    result,
    write,
)
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_django.fixtures import Settings

BASIC = """
import os, sys, time, json
calls = 0
def count(event, context):
    global calls
    calls += 1
    return {"pid": os.getpid(), "calls": calls}
def echo(event, context): return event
def nap(event, context):
    open(event["begun"], "w").write(str(os.getpid()))
    while not os.path.exists(event["go"]): time.sleep(0.01)
    return os.getpid()
"""


@pytest.fixture
def folder(settings: Settings, tmp_path: Path) -> Iterator[Path]:
    """Make a data folder with the module ``work``; functions have processes of their own."""
    settings.DATA_DIR = tmp_path
    settings.STATEYARD_FUNCTION_PROCESSES = 4
    (tmp_path / "work.py").write_text(BASIC, encoding="utf-8")
    yield tmp_path
    pool._current.close()


@pytest.fixture(params=["poll", "no poll"])
def either_way(folder: Path, request: pytest.FixtureRequest, monkeypatch: Any) -> Path:
    """Return the folder, once as on a platform without ``poll``."""
    if request.param == "no poll":
        monkeypatch.setattr(process_output, "can_poll", lambda: False)
        monkeypatch.setattr(pool, "can_poll", lambda: False)
    return folder


# -- processes -------------------------------------------------------------------------------------


def test_a_process_is_kept_and_belongs_to_one_function(folder: Path) -> None:
    """Its variables live on, as in Lambda; another function has another process."""
    first, second = (result(call("work:count")) for _ in range(2))
    assert first["pid"] == second["pid"] != os.getpid()
    assert (first["calls"], second["calls"]) == (1, 2)
    assert result(call("work:count", name="g"))["calls"] == 1


def test_calls_at_once_have_a_process_each(folder: Path) -> None:
    """Up to the limit; the calls beyond it wait, and a process of another function makes room."""
    result(call("work:count", name="another"))
    go = folder / "go"
    begun = [folder / f"begun-{number}" for number in range(6)]
    events = [{"begun": str(path), "go": str(go)} for path in begun]
    with ThreadPoolExecutor(6) as threads:
        calls = [threads.submit(call, "work:nap", event) for event in events]
        wait_until(lambda: sum(path.exists() for path in begun) == 4)
        assert len(pool._current.get().pids) == 4
        go.touch()
        pids = {result(each.result()) for each in calls}
    assert len(pids) <= 4
    assert result(call("work:echo", 1, name="third")) == 1
    assert len(pool._current.get().pids) == 4


def test_idle_processes_end_after_a_while(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And the next call starts one again."""
    monkeypatch.setattr(pool, "_IDLE_S", 0.2)
    pid = result(call("work:count"))["pid"]
    wait_until(lambda: not is_running(pid))
    assert pool._current.get().pids == []
    assert result(call("work:count"))["pid"] != pid


NOISE = """
import os, subprocess, sys, logging
print("at the import")
def f(event, context):
    print("printed é")
    os.write(1, b"by the number\\n")
    sys.stderr.write("an error\\n")
    subprocess.run([sys.executable, "-c", "print('of a child')"])
    logging.getLogger("shop").warning("logged")
    sys.stdin.read()
    return event
def much(event, context):
    print("first")
    for number in range(event):
        print("x" * 99)
    print("last")
def close(event, context):
    os.close(1), os.close(2)
    return 1
"""


def test_what_a_function_prints_does_not_break_its_answer(either_way: Path) -> None:
    """All of it is kept, whoever of its process writes it, and whose call it was."""
    write(either_way, "noise", NOISE)
    outcome = call("noise:f", {"a": 1})
    assert result(outcome) == {"a": 1}
    assert isinstance(outcome, Succeeded)
    assert outcome.record is not None
    lines = outcome.record.output.splitlines()
    assert lines[:5] == ["at the import", "printed é", "by the number", "an error", "of a child"]
    assert lines[5].startswith("[WARNING]\t2")
    assert lines[5].endswith(f"Z\t{outcome.record.request}\tlogged")
    assert outcome.record.init_ms is not None
    assert outcome.record.memory_mb > 0
    again = call("noise:f", 2)
    assert again.record.output.splitlines()[0] == "printed é"
    assert again.record.init_ms is None


def test_output_is_bounded(either_way: Path) -> None:
    """Its beginning and its end stay."""
    write(either_way, "noise", NOISE)
    printed = call("noise:much", 50_000).record.output
    assert len(printed) < MOST_OUTPUT + 100
    assert printed.startswith("at the import\nfirst\n")
    assert printed.endswith("last\n")
    assert "bytes are left out" in printed


def test_a_function_that_closes_its_output_still_answers(either_way: Path) -> None:
    """More than once."""
    write(either_way, "noise", NOISE)
    assert [result(call("noise:close")) for _ in range(1)] == [1]


# -- ends ------------------------------------------------------------------------------------------

CRASHES = """
import ctypes, os, signal, sys, time, threading, subprocess
def leave(event, context):
    print("before the end")
    os._exit(event)
def segfault(event, context): ctypes.string_at(0)
def kill(event, context): os.kill(os.getpid(), 9)
def quit(event, context):
    threading.Thread(target=time.sleep, args=(600,)).start()
    sys.exit(event)
def sleep(event, context):
    print("asleep", flush=True)
    child = subprocess.Popen(["sleep", "600"])
    open(event, "w").write(f"{os.getpid()} {child.pid}")
    time.sleep(600)
def fill(event, context): return len(bytearray(event * 1024 * 1024))
"""


@pytest.mark.parametrize(
    ("handler", "event", "said"),
    [
        ("leave", 3, "exit status 3"),
        ("leave", 0, "without providing a reason"),
        ("segfault", None, "signal: segmentation fault"),
        ("kill", None, "signal: killed"),
        ("quit", 4, "exit status 4"),
        ("quit", "no", "exit status 1"),
    ],
)
def test_a_process_that_ends_is_the_end_of_a_call_only(
    folder: Path, handler: str, event: Any, said: str
) -> None:
    """Lambda's error; the next call gets a new process."""
    write(folder, "crashes", CRASHES)
    for _ in range(2):
        outcome = call(f"crashes:{handler}", event)
        assert said in report(outcome, "Runtime.ExitError")["errorMessage"]
    if handler == "leave":
        assert outcome.record.output == "before the end\n"
    assert pool._current.get().pids == []
    assert result(call("work:echo", 1)) == 1


@pytest.mark.slow
def test_a_call_that_is_late_is_killed(either_way: Path) -> None:
    """With what it has started; its output is there."""
    write(either_way, "crashes", CRASHES)
    pids = either_way / "pids"
    outcome = call({"handler": "crashes:sleep", "timeout": 1}, str(pids))
    said = report(outcome, "Sandbox.Timedout")["errorMessage"]
    assert said.endswith("Task timed out after 1.00 seconds")
    assert outcome.record.output == "asleep\n"
    assert 900 < outcome.record.duration_ms < 30_000
    wait_until(lambda: not any(is_running(int(pid)) for pid in pids.read_text().split()))


@pytest.mark.slow
def test_the_time_of_the_task_ends_the_process_a_little_later(folder: Path) -> None:
    """States.Timeout comes from the Task's timer; the process must not go on for good."""
    write(folder, "crashes", CRASHES)
    outcome = call("crashes:sleep", str(folder / "pids"), timeout_s=1)
    assert "after 1.00 seconds" in report(outcome, "Sandbox.Timedout")["errorMessage"]
    assert outcome.record.duration_ms > 2000


_SERVER = """
import django, sys, threading, time; from pathlib import Path
django.setup()
from console.config import function_options as options
from console.functions import pool, process
folder, pids = map(Path, sys.argv[1:])
def call():
    key = process.FunctionKey("f", "crashes:sleep", options.FunctionOptions(), (str(folder),))
    call = pool.ProcessCall(key, "arn", "k", '"' + str(pids) + '"', 600, 600)
    (folder / "ended").write_text(str(pool.call_in_process(call)))
threading.Thread(target=call, daemon=True).start()
while not (folder / "leave").exists():
    time.sleep(0.01)
"""


@pytest.mark.slow
@pytest.mark.parametrize("way", ["is killed", "ends"])
def test_a_process_ends_with_the_server(folder: Path, way: str) -> None:
    """By the pipe alone, in the middle of a call, and so do the processes that it started.

    The end of the server is no failure of the call, which the next start repeats.
    """
    write(folder, "crashes", CRASHES)
    pids = folder / "pids"
    environment = os.environ | {
        "DJANGO_SETTINGS_MODULE": "console.config.settings",
        "STATEYARD_DATA": str(folder / "data"),
    }
    server = subprocess.Popen([sys.executable, "-c", _SERVER, folder, pids], env=environment)
    try:
        wait_until(lambda: pids.exists() and len(pids.read_text().split()) == 2)
        numbers = [int(pid) for pid in pids.read_text().split()]
        assert all(map(is_running, numbers))
        if way == "ends":
            (folder / "leave").touch()
            server.wait(60)
    finally:
        server.send_signal(signal.SIGKILL)
        server.wait()
    wait_until(lambda: not any(map(is_running, numbers)))
    assert not (folder / "ended").exists()


def test_memory_is_held_to_what_is_registered(folder: Path) -> None:
    """More than that is a MemoryError; the context and the environment say how much it is."""
    write(folder, "crashes", CRASHES)
    entry = {"handler": "crashes:fill", "memory": 64}
    assert result(call(entry, 20)) == 20 * 1024 * 1024
    report(call(entry, 200), "MemoryError")
    assert result(call("crashes:fill", 200)) == 200 * 1024 * 1024


# -- options ---------------------------------------------------------------------------------------

SURROUNDINGS = """
import os, sys
def f(event, context):
    return {
        "python": sys.executable, "folder": os.getcwd(), "memory": context.memory_limit_in_mb,
        "left": context.get_remaining_time_in_millis(), "own": "console" in sys.modules,
        "environment": dict(os.environ), "path": sys.path, "request": context.aws_request_id,
    }
"""


def test_environment_folder_and_context(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The function has Lambda's variables and its own, and none of the server's secrets."""
    monkeypatch.setenv("STATEYARD_SECRET", "s3cr3t")
    monkeypatch.setenv("DJANGO_SETTINGS_MODULE", "console.config.settings")
    (folder / "app").mkdir()
    write(folder / "app", "around", SURROUNDINGS)
    entry = {
        "handler": "around:f",
        "folder": "app",
        "timeout": 7.5,
        "memory": 512,
        "environment": {"TABLE": "orders", "AWS_REGION": "eu-west-1"},
    }
    shown = result(call(entry, name="orders"))
    assert shown["folder"] == str(folder / "app")
    assert shown["memory"] == "512"
    assert 0 < shown["left"] <= 7500
    assert not shown["own"]
    assert shown["path"][0] == str(folder / "app")
    variables = shown["environment"]
    assert not [name for name in variables if name.startswith(("STATEYARD_", "DJANGO_"))]
    expected = {
        "TABLE": "orders",
        "AWS_REGION": "eu-west-1",
        "AWS_LAMBDA_FUNCTION_NAME": "orders",
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "512",
        "_HANDLER": "around.f",
    }
    assert {name: variables[name] for name in expected} == expected
    assert variables["_X_AMZN_TRACE_ID"].endswith(";Sampled=0")


def test_an_interpreter_of_the_users_choice(folder: Path) -> None:
    """With the packages of its virtual environment, by a path relative to ``functions.json``."""
    venv.create(folder / "app/.venv", with_pip=False, symlinks=True)
    (site,) = (folder / "app/.venv/lib").glob("python*/site-packages")
    write(site, "only_there", "VALUE = 7\n")
    write(folder, "of_venv", "import sys, only_there\ndef f(*_): return sys.executable\n")
    general = {"python": "app/.venv/bin/python"}
    definition = targets.read_function("of_venv:f", "", general)
    assert definition.options.python == str(folder / "app/.venv/bin/python")
    assert function.find_problem(definition) == ""
    shown = result(call({"handler": "of_venv:f", **general}))
    assert shown == str(folder / "app/.venv/bin/python")
    report(call("of_venv:f"), "Runtime.ImportModuleError")
    assert "only_there" in function.find_problem(targets.read_function("of_venv:f", "", {}))


@pytest.mark.slow
def test_each_python_of_this_machine_runs_functions(folder: Path) -> None:
    """From 3.9 on: results and errors are the same."""
    write(
        folder,
        "results",
        "from decimal import Decimal\nfrom collections import namedtuple\n"
        "P = namedtuple('P', 'x')\n"
        "def f(event, context): return {'d': Decimal('1.10'), 'p': [P(1)], 'b': b'x', 1: event}\n"
        "def g(event, context): return {1, 2}\n"
        "def h(event, context): return event['absent']\n",
    )
    for python in find_pythons():
        outcome = call({"handler": "results:f", "python": python}, "é")
        assert outcome == Succeeded('{"d":1.10,"p":[{"x":1}],"b":"x","1":"é"}'), python
        report(call({"handler": "results:g", "python": python}), "Runtime.MarshalError")
        error = report(call({"handler": "results:h", "python": python}, {}), "KeyError")
        assert len(error["stackTrace"]) == 1
        assert 'File "results.py", line 6, in h' in error["stackTrace"][0]
        problem = function.find_problem(
            targets.read_function({"handler": "results:absent", "python": python}, "", {})
        )
        assert problem == "Runtime.HandlerNotFound: Handler 'absent' missing on module 'results'"


@pytest.mark.parametrize("module", [runner, target_check])
def test_what_other_interpreters_run_is_written_for_python_3_9(module: Any) -> None:
    """And imports the standard library alone."""
    tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"), feature_version=(3, 9))
    names = {a.name for node in ast.walk(tree) if isinstance(node, ast.Import) for a in node.names}
    names |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name.split(".")[0] for name in names} <= sys.stdlib_module_names


BROKEN = [
    ({"handler": "work:echo", "python": "absent/python"}, "Runtime.InvalidEntrypoint", "no such"),
    ({"handler": "work:echo", "python": "no-such-python"}, "Runtime.InvalidEntrypoint", "no such"),
    ({"handler": "work:echo", "folder": "absent"}, "Runtime.InvalidWorkingDir", "absent"),
    ({"handler": "absent:f"}, "Runtime.ImportModuleError", "No module named 'absent'"),
    ({"handler": "work:absent"}, "Runtime.HandlerNotFound", "'absent' missing"),
    ({"handler": "crooked:f", "folder": "."}, "Runtime.UserCodeSyntaxError", "crooked"),
]


@pytest.mark.parametrize(("entry", "name", "said"), BROKEN)
def test_a_broken_function_is_known_before_and_at_the_call(
    folder: Path, entry: dict[str, Any], name: str, said: str
) -> None:
    """By the same name, which is Lambda's."""
    write(folder, "crooked", "def f(:\n")
    problem = function.find_problem(targets.read_function(entry, "", {}))
    assert problem.startswith(f"{name}: ")
    assert said in problem
    assert said in report(call(entry), name)["errorMessage"]
    assert pool._current.get().pids == []


def test_an_error_of_the_import(folder: Path) -> None:
    """Its own name and line; the next call imports again."""
    write(folder, "early", "print('importing')\ndef f(*_): return 1\n1 / 0\n")
    outcome = call("early:f")
    (line,) = report(outcome, "ZeroDivisionError")["stackTrace"]
    assert 'File "early.py", line 3' in line
    lines = outcome.record.output.splitlines()
    assert lines[:2] == ["importing", "[ERROR] ZeroDivisionError: division by zero"]
    assert 'File "early.py", line 3' in lines[3]
    write(folder, "early", "def f(*_): return 1\n")
    assert result(call("early:f")) == 1
    write(folder, "leaves", "import sys\nsys.exit(5)\n")
    said = report(call("leaves:f"), "Runtime.ExitError")["errorMessage"]
    assert "exit status 5" in said


# -- changes ---------------------------------------------------------------------------------------


def test_a_change_starts_a_new_process_and_lets_calls_end(folder: Path) -> None:
    """Of the module or of its helper, also a second edit within the second."""
    write(folder, "prices", "PRICE = 1\n")
    write(folder, "shop", BASIC + "import prices\ndef f(*_): return prices.PRICE\n")
    assert result(call("shop:f")) == 1
    begun, go = folder / "begun", folder / "go"
    with ThreadPoolExecutor(1) as threads:
        under_way = threads.submit(call, "shop:nap", {"begun": str(begun), "go": str(go)})
        wait_until(begun.exists)
        for price in (2, 3):
            write(folder, "prices", f"PRICE = {price}\n")
            wait_until(lambda price=price: result(call("shop:f")) == price)
        go.touch()
        assert result(under_way.result()) == int(begun.read_text())


def test_many_threads_share_the_pool(either_way: Path) -> None:
    """No call is lost, and each gets its own answer and its own output."""
    write(
        either_way, "chat", "def f(event, context):\n    print('said', event)\n    return event\n"
    )
    results: dict[int, Any] = {}

    def work(number: int) -> None:
        for index in range(20):
            outcome = call("chat:f", [number, index])
            results[number * 100 + index] = (
                result(outcome),
                outcome.record.output,
            )

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 160
    for key, (value, printed) in results.items():
        assert value == [key // 100, key % 100]
        assert printed == f"said {value}\n"


# -- aws-lambda-powertools -------------------------------------------------------------------------

POWERTOOLS = """
import os
os.environ |= {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
from moto import mock_aws
mock_aws().start()
import boto3
from aws_lambda_powertools import Logger, Tracer
from aws_lambda_powertools.utilities.idempotency import DynamoDBPersistenceLayer, idempotent
boto3.client("dynamodb").create_table(
    TableName="calls",
    KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
    AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
    BillingMode="PAY_PER_REQUEST",
)
logger, tracer, calls = Logger(service="shop"), Tracer(service="shop"), []
@logger.inject_lambda_context(log_event=True)
@tracer.capture_lambda_handler
@idempotent(persistence_store=DynamoDBPersistenceLayer(table_name="calls"))
def f(event, context):
    logger.info("working")
    calls.append(event)
    return len(calls)
"""


@pytest.mark.slow
def test_the_decorators_of_powertools_work_in_a_process(folder: Path) -> None:
    """Logger, tracer and idempotency of the real package, with Lambda's variables around them."""
    write(folder, "powered", POWERTOOLS)
    outcomes = [call("powered:f", event) for event in ({"n": 1}, {"n": 1}, {"n": 2})]
    assert [result(outcome) for outcome in outcomes] == [1, 1, 2]
    lines = outcomes[0].record.output.splitlines()
    line = next(json.loads(each) for each in lines if '"message":"working"' in each)
    assert line["function_request_id"] == outcomes[0].record.request
    assert line["function_name"] == "f"
    assert "working" not in outcomes[1].record.output
