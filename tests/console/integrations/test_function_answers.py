"""A call gets the answer to its own request, whatever a function writes into the server's pipe."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from console.functions import pool
from tests.console.integrations.function_calls import call, report, result, write

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pytest_django.fixtures import Settings

FORKS = """
import os
def returns(event, context):
    child = os.fork()
    return {"child": child == 0, "call": event}
def waits(event, context):
    child = os.fork()
    if child: os.waitpid(child, 0)
    return {"child": child == 0, "call": event}
"""

WRITES = """
import os, struct, json
from console.functions.runner import ANSWER_HEAD
def pipes():
    for name in os.listdir("/proc/self/fd"):
        try:
            if os.readlink("/proc/self/fd/" + name).startswith("pipe:") and int(name) > 2:
                yield int(name)
        except OSError:
            pass
def put(context, head=b"", text=b'"forged"', length=None, ms=1.0, memory=1, request=None):
    start = ANSWER_HEAD.pack(
        (request or context.REQUEST).encode(), len(head),
        len(text) if length is None else length, ms, memory)
    for pipe in pipes():
        try:
            os.write(pipe, start + head + text)
        except OSError:
            pass
def f(event, context):
    context.REQUEST = context.aws_request_id
    event = {key: value.encode() if key in ("head", "text") else value
             for key, value in event.items()}
    if "ms" in event:
        event["ms"] = float(event["ms"])
    put(context, **event)
    return "own"
"""


@pytest.fixture
def folder(settings: Settings, tmp_path: Path) -> Iterator[Path]:
    """Make a data folder; functions have one process at a time."""
    settings.DATA_DIR = tmp_path
    settings.STATEYARD_FUNCTION_PROCESSES = 1
    write(tmp_path, "forks", FORKS)
    write(tmp_path, "writes", WRITES)
    yield tmp_path
    pool._current.close()


@pytest.mark.parametrize("way", ["returns", "waits"])
@pytest.mark.usefixtures("folder")
def test_a_forked_child_that_returns_answers_nothing(way: str) -> None:
    """Its answer was that of the next call, which could be another execution's."""
    answers = [result(call(f"forks:{way}", number)) for number in range(8)]
    assert answers == [{"child": False, "call": number} for number in range(8)]


@pytest.mark.parametrize(
    "written",
    [
        {"request": "0" * 36},
        {"length": 4_294_967_295},
        {"head": "[1]"},
        {"head": '{"files": [["/etc/passwd"]]}'},
        {"head": "{"},
        {"ms": "nan"},
        {"ms": "inf"},
        {"ms": "-1"},
        {"memory": 4_000_000_000},
    ],
    ids=str,
)
@pytest.mark.usefixtures("folder")
def test_anything_but_an_answer_ends_the_process_and_the_call(written: dict[str, object]) -> None:
    """No other error comes of it, no log that no database takes, no memory beyond the limit."""
    failure = report(call("writes:f", written), "Runtime.ExitError")
    assert "exited with error" in failure["errorMessage"]
    assert result(call("forks:waits", 1))["call"] == 1


def test_the_message_of_an_error_is_bounded(folder: Path) -> None:
    """A cause has 32,768 characters at most: a hundred megabytes need not come that far."""
    write(folder, "loud", "def f(event, context): raise ValueError('x' * event)")
    error = report(call("loud:f", 50_000_000), "ValueError")
    assert len(error["errorMessage"]) == 100_000
