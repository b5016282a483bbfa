"""The server of the pytest plugin starts at once, and a state machine of a test runs at once."""

from __future__ import annotations

import json
import statistics
import time
from typing import TYPE_CHECKING

import pytest

from console.testing.server import StateyardServer
from tests.benchmarks.compared_servers import process_tree_s

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.acceptance

_PASS = {"StartAt": "Pass", "States": {"Pass": {"Type": "Pass", "End": True}}}
_START, _RUN = 250, 2.5
"""In yardsticks, see ``_yardstick_s``: on a machine where one takes 8 ms, 2 s and 20 ms."""
_RUNS = 20
"""In a row: the system counts processor time in steps of 10 ms."""


def test_a_session_starts_and_runs_in_no_time(tmp_path: Path) -> None:
    """A session's server is ready after 250 yardsticks, ``run_machine`` of a Pass after 2.5.

    In processor time of tests and server. A loaded or a slow machine stretches the yardstick as
    well; ``tests.benchmarks.start_cost`` measures both in seconds on a quiet one.
    """
    starts = [_compared(lambda turn=turn: _start(tmp_path / str(turn))) for turn in range(5)]
    assert min(starts) < _START
    server = StateyardServer(tmp_path)
    server.start()
    try:
        assert min(_compared(lambda: _row(server)) for _ in range(20)) < _RUN
    finally:
        server.stop()


_ENDS = {
    "SUCCEEDED": {"Type": "Succeed", "Output": {"n": 1}},
    "FAILED": {"Type": "Fail", "Error": "Broken", "Cause": "of no use"},
}
"""Status -> the state that leads to it."""


def test_a_run_read_from_its_history_equals_the_described_one(tmp_path: Path) -> None:
    """``run_machine`` reads no status of a short run; ``wait`` does, and returns the same."""
    server = StateyardServer(tmp_path)
    server.start()
    try:
        for status, end in _ENDS.items():
            states = {"StartAt": "End", "States": {"End": end}}
            run = server.run_machine({"QueryLanguage": "JSONata", **states})
            assert run.status == status
            assert run == server.wait(run.arn)
    finally:
        server.stop()


def _compared(measure: Callable[[], float]) -> float:
    """Return a processor time in yardsticks that were taken right before and after it."""
    before = [_yardstick_s() for _ in range(5)]
    seconds = measure()
    return seconds / statistics.median([*before, *(_yardstick_s() for _ in range(5))])


def _yardstick_s() -> float:
    """Return the processor time of 1,000 small JSON texts written and read, in seconds."""
    began = time.process_time()
    for number in range(1000):
        json.loads(json.dumps({"a": [number] * 20, "b": {"c": "d" * 50}}))
    return time.process_time() - began


def _start(folder: Path) -> float:
    """Return the processor time until a server of its own data folder is ready, in seconds."""
    folder.mkdir()
    server, began = StateyardServer(folder), time.process_time()
    server.start()
    try:
        return _spent(server) - began
    finally:
        server.stop()


def _row(server: StateyardServer) -> float:
    before = _spent(server)
    for _ in range(_RUNS):
        assert server.run_machine(_PASS, {"n": 1}).output == {"n": 1}
    return (_spent(server) - before) / _RUNS


def _spent(server: StateyardServer) -> float:
    """Return the processor time of this process and of the server, in seconds."""
    assert server._process is not None
    return time.process_time() + process_tree_s((server._process.pid,))
