"""The server of the pytest plugin starts at once, and a state machine of a test runs at once."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from console.testing.server import StateyardServer
from tests.benchmarks.compared_servers import process_tree_s

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.acceptance

_PASS = {"StartAt": "Pass", "States": {"Pass": {"Type": "Pass", "End": True}}}
_START_S = 1.5
_RUN_S = 0.020
_RUNS = 20
"""In a row: the system counts processor time in steps of 10 ms."""


def test_a_session_starts_and_runs_in_no_time(tmp_path: Path) -> None:
    """A session's server is ready after 1.5 s, and ``run_machine`` of a Pass returns after 20 ms.

    In processor time of tests and server. A loaded machine doubles it, so some start and some row
    of runs have to stay below; ``tests.benchmarks.start_cost`` measures both on a quiet one.
    """
    assert any(_start(tmp_path / str(turn)) < _START_S for turn in range(5))
    server = StateyardServer(tmp_path)
    server.start()
    try:
        assert any(_row(server) < _RUN_S for _ in range(60))
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
