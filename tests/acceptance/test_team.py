"""A team of processes works on one PostgreSQL, and its members hand over to each other."""

from __future__ import annotations

import json
import os
import shutil
import signal
import tempfile
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.acceptance.server import wait_for_end
from tests.chaos.shapes import SHAPES
from tests.chaos.team_server import TeamServer, machine_arn
from tests.postgres import Postgres
from tests.waiting import PATIENCE_S, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.acceptance, pytest.mark.postgres_only]


@pytest.fixture(scope="module")
def yard() -> Iterator[TeamServer]:
    """A web process and two workers."""
    folder = Path(tempfile.mkdtemp(prefix="stateyard-team-"))
    folder.chmod(0o755)
    server = Postgres(folder / "pg", migrated=True)
    yard = TeamServer(folder, server.url)
    yard.start_web()
    yard.start_workers(2)
    yard.prepare()
    yield yard
    yard.stop()
    server.stop("fast")
    shutil.rmtree(folder, ignore_errors=True)


def facts(yard: TeamServer) -> dict[str, Any]:
    """Return what ``/readyz`` says."""
    with urllib.request.urlopen(
        f"http://127.0.0.1:{yard.port}/readyz", timeout=PATIENCE_S
    ) as answer:
        body: dict[str, Any] = json.load(answer)
    return body


def run(yard: TeamServer, shape: str, number: int) -> str:
    """Start an execution of a shape."""
    answer = yard.client().start_execution(
        stateMachineArn=machine_arn(shape), input=json.dumps({"n": number})
    )
    arn: str = answer["executionArn"]
    return arn


@pytest.mark.parametrize("shape", [shape for shape in SHAPES if shape.name != "activity"])
def test_workers_take_what_the_web_process_accepts(yard: TeamServer, shape: Any) -> None:
    """Every shape ends with its output, though the process that took it does no step."""
    execution = wait_for_end(yard.client(), run(yard, shape.name, 7))
    assert json.loads(execution["output"]) == shape.output(7)


def test_readiness_knows_the_workers(yard: TeamServer) -> None:
    """Two alive, nothing late, no lease expired."""
    readiness = facts(yard)
    assert (readiness["ready"], readiness["workers"], readiness["expired_leases"]) == (True, 2, 0)
    assert readiness["oldest_runnable_ms"] < 5000


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="not known on this system")
def test_only_the_web_process_keeps_to_one_processor(yard: TeamServer) -> None:
    """Its threads take turns; a worker may use all processors that it was started with."""
    assert yard.web is not None
    assert len(os.sched_getaffinity(yard.web.pid)) == 1
    worker = yard.worker_pids()[0]
    assert os.sched_getaffinity(worker) == os.sched_getaffinity(0)


def test_a_worker_that_is_told_to_end_hands_over(yard: TeamServer) -> None:
    """SIGTERM ends it; what it had goes on elsewhere."""
    arns = [run(yard, "parallel", number) for number in range(10)]
    pid = yard.worker_pids()[0]
    os.kill(pid, signal.SIGTERM)
    wait_until(lambda: pid not in yard.worker_pids())
    for arn in arns:
        assert wait_for_end(yard.client(), arn)["status"] == "SUCCEEDED"


def test_an_embedded_server_keeps_off_a_team(yard: TeamServer) -> None:
    """``up`` on the same database says who is there."""
    assert "another worker is running" in yard.complaint("up", "--port", "0")


def test_after_a_restore_old_workers_write_nothing_more(yard: TeamServer) -> None:
    """A new epoch ends them; those that replace them go on with all."""
    before = set(yard.worker_pids())
    yard.manage("bump_epoch")
    arns = [run(yard, "wait", number) for number in range(6)]
    for arn in arns:
        assert wait_for_end(yard.client(), arn)["status"] == "SUCCEEDED"
    wait_until(lambda: not before & set(yard.worker_pids()))


def test_a_team_needs_postgresql(tmp_path: Path) -> None:
    """On SQLite both commands say what they want."""
    alone = TeamServer(tmp_path, None)
    for command in ("worker", "web"):
        assert "wanted postgres://" in alone.complaint(command)
