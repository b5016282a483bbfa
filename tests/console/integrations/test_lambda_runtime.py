"""A Python callable meets what a handler meets in Lambda, and fails as a handler does there."""

from __future__ import annotations

import json
import os
import sys
import time
from collections import namedtuple
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
import structlog

import engine
from console.config.functions_file import FunctionsFile
from console.config.setting_shapes import FUNCTIONS
from console.functions import handlers
from console.functions.runner import IMPORT_ERROR, NOT_FOUND, SYNTAX_ERROR
from console.integrations import function
from console.integrations.outcome import Failed, Outcome, Succeeded, TaskAttempt
from console.worker import task_delivery
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pytest_django.fixtures import Settings

ARN = "arn:aws:lambda:us-east-1:123456789012:function:work"
Point = namedtuple("Point", ["x", "y"])  # noqa: PYI024 - as functions have them
RESULTS: dict[str, Any] = {
    "decimals": {"price": Decimal("1.10"), "count": Decimal(3)},
    "tuple": (1, Point(1, 2)),
    "bytes": b'{"a": 1}',
    "text": "é",
    "keys": {1: None},
    "set": {1},
    "nan": Decimal("NaN"),
    "bytes that are no JSON": b"\xff",
    "bytes that are text": b"hello",
    "long": "x" * (6 * 1024 * 1024 + 100),
}


@pytest.fixture
def folder(settings: Settings, tmp_path: Path) -> Iterator[Path]:
    """Make a data folder for modules; what was imported from it is forgotten."""
    settings.DATA_DIR = tmp_path
    path, modules = list(sys.path), set(sys.modules)
    yield tmp_path
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def called(target: str, event: Any = None, timeout_s: int | None = None) -> Outcome:
    """Call a target as the function "work"."""
    task = TaskAttempt(
        kind="lambda",
        resource=ARN,
        service="",
        action="",
        input=engine.dumps(event),
        idempotency_key="k",
        execution_arn="",
        token="",
        timeout_s=timeout_s,
    )
    return function.call_target(target, "work", task)


def report(outcome: Outcome, name: str) -> dict[str, Any]:
    """Return the report of a failure with this name."""
    assert isinstance(outcome, Failed), outcome
    assert outcome.error == name, outcome
    error: dict[str, Any] = json.loads(outcome.cause or "")
    assert error["errorType"] == name
    assert error["requestId"]
    return error


# -- the context -----------------------------------------------------------------------------------


def show_context(_: Any, context: Any) -> Any:
    """Return what a handler reads of its context."""
    names = [
        *("function_name", "function_version", "invoked_function_arn", "memory_limit_in_mb"),
        *("aws_request_id", "log_group_name", "log_stream_name"),
        *("idempotency_key", "client_context"),
    ]
    shown = {name: getattr(context, name) for name in names}
    return shown | {
        "left": context.get_remaining_time_in_millis(),
        "identity": context.identity.cognito_identity_id,
    }


def test_the_context_is_lambdas() -> None:
    """With its types: the memory is a text in Python's runtime."""
    outcome = called(f"{__name__}:show_context", timeout_s=7)
    assert isinstance(outcome, Succeeded)
    shown = json.loads(outcome.output)
    assert 0 < shown.pop("left") <= 7000
    assert len(shown.pop("aws_request_id")) == 36
    assert shown.pop("log_stream_name").startswith(time.strftime("%Y/", time.gmtime()))
    assert shown == {
        "function_name": "work",
        "function_version": "$LATEST",
        "invoked_function_arn": ARN,
        "memory_limit_in_mb": "128",
        "log_group_name": "/aws/lambda/work",
        "idempotency_key": "k",
        "client_context": None,
        "identity": None,
    }


# -- results and errors ----------------------------------------------------------------------------


def answer(event: Any, _: Any) -> Any:
    """Return one of the results."""
    return RESULTS[event]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("decimals", '{"price":1.10,"count":3}'),
        ("tuple", '[1,{"x":1,"y":2}]'),
        ("bytes", '{"a": 1}'),
        ("text", '"é"'),
        ("keys", '{"1":null}'),
    ],
)
def test_a_result_is_written_as_lambda_writes_it(name: str, text: str) -> None:
    """Decimals with all their digits, named tuples as objects, bytes as they are."""
    assert called(f"{__name__}:answer", name) == Succeeded(text)


def test_results_that_are_refused() -> None:
    """Each with Lambda's own name."""
    said = report(called(f"{__name__}:answer", "set"), "Runtime.MarshalError")["errorMessage"]
    assert said.startswith("Unable to marshal response: ")
    assert "set is not JSON serializable" in said
    report(called(f"{__name__}:answer", "bytes that are no JSON"), "Runtime.MarshalError")
    said = report(called(f"{__name__}:answer", "long"), "Function.ResponseSizeTooLarge")
    assert "(6291558 bytes)" in said["errorMessage"]
    for name in ("nan", "bytes that are text"):
        outcome = called(f"{__name__}:answer", name)
        assert isinstance(outcome, Failed)
        assert outcome.error == "Lambda.Unknown"


def leave(event: Any, _: Any) -> None:
    """End the process, as a script does."""
    sys.exit(event)


@pytest.mark.parametrize(
    ("code", "said"), [(3, "exit status 3"), ("no", "exit status 1"), (0, "without providing")]
)
def test_a_handler_that_exits(code: Any, said: str) -> None:
    """The server stays, and the Task has Lambda's error."""
    assert said in report(called(f"{__name__}:leave", code), "Runtime.ExitError")["errorMessage"]


BROKEN = [
    ("absent.py", "", "nowhere_at_all:f", IMPORT_ERROR, "No module named 'nowhere_at"),
    ("lacking.py", "import nowhere_at_all\n", "lacking:f", IMPORT_ERROR, "nowhere_at_all"),
    ("crooked.py", "def f(:\n", "crooked:f", SYNTAX_ERROR, "invalid syntax"),
    ("empty.py", "g = 1\n", "empty:f", NOT_FOUND, "Handler 'f' missing on module 'empty'"),
    ("flat.py", "", "flat.deep:f", IMPORT_ERROR, "No module named 'flat.deep'"),
]


@pytest.mark.parametrize(("file", "source", "target", "name", "said"), BROKEN)
def test_a_broken_target_is_known_before_and_at_the_call(
    folder: Path, file: str, source: str, target: str, name: str, said: str
) -> None:
    """The check imports nothing and says the same as the call."""
    (folder / file).write_text(source, encoding="utf-8")
    problem = handlers.find_problem(target)
    assert problem.startswith(name)
    assert said in problem
    assert file.removesuffix(".py") not in sys.modules
    error = report(called(target), name)
    assert said in error["errorMessage"]
    assert error["stackTrace"] == []


def test_an_error_at_import_has_its_own_name(folder: Path) -> None:
    """With the line of the module, and without those of the import."""
    (folder / "early.py").write_text("def f(*_): pass\n1 / 0\n", encoding="utf-8")
    assert handlers.find_problem("early:f") == ""
    (line,) = report(called("early:f"), "ZeroDivisionError")["stackTrace"]
    assert 'File "early.py", line 2' in line


@pytest.mark.parametrize(
    "source",
    [
        "def f(*_): return 1\n",
        "f = lambda *_: 1\n",
        "class f:\n    def __new__(cls, *_): return 1\n",
        "from os.path import *\nf = globals()['f'] = lambda *_: 1\n",
        "try:\n    import nowhere_at_all\nexcept ImportError:\n    def f(*_): return 1\n",
        "def __getattr__(name): return lambda *_: 1\n",
        "import sys\nsys.path.append(__file__[:-7] + 'vendor')\nimport vendored\nf = vendored.f\n",
    ],
)
def test_no_target_is_called_broken_that_works(folder: Path, source: str) -> None:
    """What cannot be known without running it is no problem."""
    (folder / "fine.py").write_text(source, encoding="utf-8")
    (folder / "vendor").mkdir()
    (folder / "vendor/vendored.py").write_text("def f(*_): return 1\n", encoding="utf-8")
    assert handlers.find_problem("fine:f") == ""
    assert called("fine:f") == Succeeded("1")
    assert handlers.find_problem("fine:f") == ""


# -- where modules are, and their changes ----------------------------------------------------------


def test_modules_are_searched_in_the_data_folder_and_the_current_one(
    folder: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In this order, and behind everything the server has itself."""
    current = tmp_path_factory.mktemp("current")
    monkeypatch.chdir(current)
    for place in (folder, current):
        (place / "both.py").write_text(f"def f(*_): return {place.name!r}\n")
        (place / "engine.py").write_text("def f(*_): return 1\n")
    (current / "only.py").write_text(
        "class Shop:\n    def f(*_): return 2\n    f = staticmethod(f)"
    )
    assert called("both:f") == Succeeded(json.dumps(folder.name))
    assert called("only:Shop.f") == Succeeded("2")
    report(called("engine:f"), NOT_FOUND)


def test_a_change_of_a_module_or_its_helper_counts(folder: Path) -> None:
    """Also a second edit within the second, and one that mends what was broken."""
    helper = folder / "prices.py"
    helper.write_text("PRICE = 1\n", encoding="utf-8")
    (folder / "shop.py").write_text("import prices\ndef f(*_): return prices.PRICE\n")
    assert called("shop:f") == Succeeded("1")
    for price in "23":
        helper.write_text(f"PRICE = {price}\n", encoding="utf-8")
        wait_until(lambda price=price: called("shop:f") == Succeeded(price))
    helper.write_text("PRICE = (\n", encoding="utf-8")
    wait_until(lambda: isinstance(called("shop:f"), Failed))
    helper.write_text("PRICE = 4\n", encoding="utf-8")
    wait_until(lambda: called("shop:f") == Succeeded("4"))


def test_functions_json_is_read_again_when_it_changes(tmp_path: Path) -> None:
    """A file that cannot be used changes nothing and says so; the environment wins."""
    path = tmp_path / "functions.json"
    file = FunctionsFile(path, FUNCTIONS, {"b": "shop:b"})
    assert dict(file) == {"b": "shop:b"}
    path.write_text('{"a": "shop:a", "b": "shop:other"}', encoding="utf-8")
    assert file == {"a": "shop:a", "b": "shop:b"}
    path.write_text('{"a": 1}', encoding="utf-8")
    assert file["a"] == "shop:a"
    assert "wanted a text" in file.problem
    path.write_text("{}", encoding="utf-8")
    assert "a" not in file
    assert file.problem == ""
    os.unlink(path)  # noqa: PTH108 - as an operator does
    assert len(file) == 1


def test_broken_registrations_are_listed_with_their_place(settings: Settings) -> None:
    """Of every project and state machine; addresses are left alone."""
    settings.STATEYARD_FUNCTIONS = {
        "a": "nowhere_at_all:f",
        "b": "http://127.0.0.1:1/",
        "c": f"{__name__}:answer",
        "projects": {"shop": {"d": f"{__name__}:absent"}},
    }
    settings.STATEYARD_TARGETS = {"machines": {"M": {"functions": {"e": "nowhere_at_all:g"}}}}
    problems = {entry: problem for entry, _, problem in function.broken_registrations()}
    assert list(problems) == [
        "functions: a",
        "functions: projects: shop: d",
        "machines: M: functions: e",
    ]
    assert problems["functions: projects: shop: d"].startswith(NOT_FOUND)


def test_the_log_warns_of_them_at_the_start(settings: Settings) -> None:
    """One line each, which says where, what and why."""
    settings.STATEYARD_FUNCTIONS = {"a": "nowhere_at_all:f", "b": f"{__name__}:answer"}
    with structlog.testing.capture_logs() as lines:
        task_delivery.warn_of_broken_functions()
    (line,) = lines
    assert (line["log_level"], line["entry"]) == ("warning", "functions: a")
    assert "nowhere_at_all" in line["problem"]
