"""The pytest plugin serves the tests of another project, as its author would write them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Sequence

pytestmark = pytest.mark.acceptance

ROOT = Path(__file__).parent.parent.parent
CONFTEST = """
import json
import pytest


@pytest.fixture(scope="session")
def stateyard_data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("yard")
    (folder / "functions.json").write_text(json.dumps({"double": "shop_handlers:double"}))
    return folder
"""
HANDLERS = """
from decimal import Decimal


def double(event, context):
    return {"n": Decimal(event["n"]) * 2, "by": context.function_name}
"""
TESTS = '''
import pytest

ARN = "arn:aws:lambda:us-east-1:123456789012:function:"


def machine(name, **more):
    task = {"Type": "Task", "Resource": ARN + name, "Next": "Done", **more}
    return {"StartAt": "Ask", "States": {"Ask": task, "Done": {"Type": "Pass", "End": True}}}


def test_a_module_beside_the_tests(stateyard):
    run = stateyard.run_machine(machine("double"), {"n": 4})
    run.assert_succeeded({"n": 8, "by": "double"}).assert_path("Ask", "Done")
    assert run.invocations == ()


def test_a_fault(stateyard):
    retry = [{"ErrorEquals": ["Busy"], "IntervalSeconds": 1}]
    fault = {"state": "Ask", "error": "Busy", "attempts": [1]}
    run = stateyard.run_machine(machine("double", Retry=retry), {"n": 4}, faults=[fault])
    run.assert_succeeded({"n": 8, "by": "double"})
    assert [event["type"] for event in run.history].count("LambdaFunctionFailed") == 1
    with pytest.raises(ValueError, match="got the state 'No', wanted one of"):
        stateyard.run_machine(machine("double"), faults=[{"state": "No"}])


def test_a_named_input(stateyard):
    stateyard.create_machine(machine("double"), name="orders")
    name = stateyard.save_input("orders", "big order", {"n": 5})
    run = stateyard.run_machine(machine("double"), input_name=name)
    run.assert_succeeded({"n": 10, "by": "double"})
    with pytest.raises(ValueError, match="has no input “small”"):
        stateyard.run_machine(machine("double"), input_name="orders/small")


def test_a_callable_of_the_test(stateyard):
    factor = 3
    functions = {"triple": lambda event: event["n"] * factor}
    run = stateyard.run_machine(machine("triple"), {"n": 4}, functions=functions)
    run.assert_succeeded(12)
    assert [(call.function, call.event) for call in run.invocations] == [("triple", {"n": 4})]


def test_it_takes_the_place_of_an_earlier_one(stateyard):
    def triple(event, context):
        return context.get_remaining_time_in_millis() > 0

    stateyard.run_machine(machine("triple"), functions={"triple": triple}).assert_succeeded(True)


class OutOfStockError(Exception):
    """There is nothing left."""


def sell(event):
    raise OutOfStockError("no red shoes")


def test_an_error_of_a_callable(stateyard):
    run = stateyard.run_machine(machine("sell"), functions={"sell": sell})
    run.assert_failed("OutOfStockError", "no red shoes").assert_path("Ask")


def test_one_that_fails_and_prints_the_path(stateyard):
    stateyard.run_machine(machine("sell"), {"n": 1}, functions={"sell": sell}).assert_succeeded()


def test_many_calls_at_once(stateyard):
    task = {"Type": "Task", "Resource": ARN + "square", "End": True}
    processor = {"StartAt": "Square", "States": {"Square": task}}
    squares = {"Type": "Map", "ItemProcessor": processor, "End": True}
    functions = {"square": lambda n: n * n}
    machine = {"StartAt": "All", "States": {"All": squares}}
    run = stateyard.run_machine(machine, list(range(100)), functions=functions)
    run.assert_succeeded([n * n for n in range(100)])
    assert sorted(call.event for call in run.invocations) == list(range(100))


def test_an_express_machine(stateyard):
    run = stateyard.run_machine(machine("double"), {"n": 1}, machine_type="EXPRESS")
    run.assert_succeeded({"n": 2, "by": "double"})
    assert run.path == ()


def test_an_end_that_does_not_come(stateyard):
    waiting = {"StartAt": "Rest", "States": {"Rest": {"Type": "Wait", "Seconds": 900, "End": True}}}
    with pytest.raises(TimeoutError, match="RUNNING(.|\\n)*Rest"):
        stateyard.run_machine(waiting, timeout_s=0.1)


def test_clients_of_ones_own(stateyard):
    arn = stateyard.create_machine(machine("double"), name="orders")
    client = stateyard.client()
    listed = client.list_state_machines()["stateMachines"]
    assert arn in [each["stateMachineArn"] for each in listed]
    started = client.start_execution(stateMachineArn=arn, input='{"n": 2}')
    assert stateyard.wait(started["executionArn"]).output == {"n": 4, "by": "double"}
    assert stateyard.environment["AWS_ENDPOINT_URL_SFN"] == stateyard.url
    print("pid", stateyard._process.pid)
'''


def run_pytest(
    folder: Path, *words: str, runner: Sequence[str] = ("-m", "pytest")
) -> subprocess.CompletedProcess[str]:
    """Run pytest in the folder of another project."""
    env = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "DJANGO_SETTINGS_MODULE": "shop.settings",
        "STATEYARD_DATABASE_URL": "postgres://nobody@127.0.0.1:1/shop",
    }
    for name in ("PYTEST_ADDOPTS", "PYTEST_XDIST_WORKER", "PYTEST_CURRENT_TEST"):
        env.pop(name, None)
    options = ["-p", "no:django", "-p", "no:cacheprovider"]
    if not entry_points(group="pytest11", name="stateyard"):  # the project is not installed here
        options += ["-p", "console.testing.plugin"]
    return subprocess.run(
        [sys.executable, "-P", *runner, "--rootdir", ".", *options, *words],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        check=False,
        timeout=400,
    )


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Run pytest in a project with settings of its own; return what it prints."""
    folder = tmp_path_factory.mktemp("project")
    page = (ROOT / "docs/how-to/testing.md").read_text(encoding="utf-8")
    texts = {
        "conftest.py": CONFTEST,
        "shop_handlers.py": HANDLERS,
        "test_shop.py": TESTS,
        "test_page.py": page.split("```python\n")[1].split("```")[0],
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    done = run_pytest(folder, "-n", "0", "-rA")
    return done.stdout + done.stderr


def test_the_tests_of_another_project_pass(printed: str) -> None:
    """All but the one that shall not, and the page's; their one server has ended with them."""
    assert "1 failed, 11 passed" in printed, printed
    assert "PASSED test_page.py" in printed
    pid = re.search(r"^pid (\d+)$", printed, re.MULTILINE)
    assert pid is not None
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid[1]), 0)


def test_a_failed_assertion_prints_the_path(printed: str) -> None:
    """With the input of each state, the error and its cause; without the helper's own lines."""
    assert "wanted status SUCCEEDED, got FAILED" in printed
    path = r'path:\n\S*\s+Ask  \{"n": ?1\}\n\S*\s+! LambdaFunctionFailed  OutOf'
    assert re.search(path, printed)
    assert "no red shoes" in printed
    assert "def _check" not in printed


RUNNER = """
import sys

import pytest
from django.conf import settings

settings.configure()
raise SystemExit(pytest.main(sys.argv[1:]))
"""


def test_it_loads_beside_the_settings_of_another_project(tmp_path: Path) -> None:
    """A runner of Django's tests has configured its settings before pytest loads plugins."""
    (tmp_path / "test_plain.py").write_text("def test_it():\n    pass\n", encoding="utf-8")
    done = run_pytest(tmp_path, "-n", "0", "-q", runner=("-c", RUNNER))
    assert "1 passed" in done.stdout, done.stdout + done.stderr


def test_a_wrong_list_of_features_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a sentence of pytest, not a traceback."""
    monkeypatch.setenv("STATEYARD_FEATURES", "coverages")
    (tmp_path / "test_plain.py").write_text("def test_it():\n    pass\n", encoding="utf-8")
    done = run_pytest(tmp_path, "-n", "0", "-q")
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "coverages" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_wheel_registers_the_plugin() -> None:
    """Pytest finds it by this entry point wherever Stateyard is installed."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["entry-points"]["pytest11"] == {"stateyard": "console.testing.plugin"}


COVERED = """
import engine
from engine import run

ARN = "arn:aws:lambda:us-east-1:123456789012:function:x"
TASK = {"Type": "Task", "Resource": ARN, "Retry": [{"ErrorEquals": ["Busy"]}], "End": True}
MACHINE = {"StartAt": "Ask", "States": {"Ask": TASK}}


def busy(data):
    raise engine.StatesError("Busy")


def test_in_memory():
    assert run(MACHINE, {}, {"Ask": busy}).status == "FAILED"


def test_of_one_state():
    mock = engine.Mock(error="Busy")
    machine = engine.parse(engine.dumps(MACHINE))
    engine.try_state(machine, "Ask", "{}", engine.Moment(0), about={}, mock=mock)


def test_on_a_server(stateyard):
    stateyard.run_machine(MACHINE, {}, functions={"x": lambda event: 1}).assert_succeeded()
"""
SETTINGS = """
[tool.stateyard.coverage]
machines = ["ask.asl.json"]
thresholds = { ask = %d }
"""


@pytest.mark.parametrize("workers", ["0", "2"])
def test_coverage_adds_up_all_tests_and_fails_below_a_threshold(
    tmp_path: Path, workers: str
) -> None:
    """Of engine.run however it was imported, TestState, the server, and workers of xdist."""
    machine: dict[str, object] = {}
    exec(COVERED, machine)  # noqa: S102 - our own text
    (tmp_path / "ask.asl.json").write_text(json.dumps(machine["MACHINE"]), encoding="utf-8")
    (tmp_path / "conftest.py").write_text("from engine import run\n", encoding="utf-8")
    (tmp_path / "test_ask.py").write_text(COVERED, encoding="utf-8")
    for least, code in ((100, 0), (0, 0)):
        settings = SETTINGS % least
        (tmp_path / "pyproject.toml").write_text(settings, encoding="utf-8")
        done = run_pytest(tmp_path, "-n", workers, "--stateyard-coverage=out.json")
        assert done.returncode == code, done.stdout + done.stderr
    assert "ask: 100.0 %" in done.stdout
    assert "1 of TestState, 1 of engine.run, 1 of the server" in done.stdout
    (entry,) = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))["machines"]
    assert entry["reached"] == ["Ask", "Ask/Retry[0] attempted", "Ask/Retry[0] exhausted"]
    (tmp_path / "test_ask.py").write_text("def test_nothing(): pass\n", encoding="utf-8")
    (tmp_path / "pyproject.toml").write_text(SETTINGS % 1, encoding="utf-8")
    done = run_pytest(tmp_path, "-n", workers, "--stateyard-coverage")
    assert done.returncode == 1
    assert "FAIL ask: got 0.0 %, wanted 1 %" in done.stdout


def test_results_of_coverage_replace_no_test(tmp_path: Path) -> None:
    """A path of tests behind the option is no file for results; the folder of one is made."""
    tests = "def test_nothing(): pass\n"
    path = tmp_path / "test_ask.py"
    path.write_text(tests, encoding="utf-8")
    done = run_pytest(tmp_path, "--stateyard-coverage", "test_ask.py")
    assert done.returncode == 4
    assert "got 'test_ask.py', wanted --stateyard-coverage=FILE.json" in done.stderr
    assert path.read_text(encoding="utf-8") == tests
    done = run_pytest(tmp_path, "--stateyard-coverage=cov/out.json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads((tmp_path / "cov" / "out.json").read_text(encoding="utf-8"))["format"]
