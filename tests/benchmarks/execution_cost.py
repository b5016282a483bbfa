"""Measure what an execution costs a team's server: processor time, statements and round trips.

``python -m tests.benchmarks.execution_cost [--executions 400] [--clients 16] [--shapes pass,map]
[--workers 1]`` starts PostgreSQL, one web process and workers, and gives them executions of six
shapes: one Pass state, one call of a registered function, an inline Map of five calls, the same two
with a function at a URL (another process, which answers at once), and one task of an activity,
which four threads of the client poll and answer. The first run of a shape takes the processor time
of the web process, the workers, and all processes of PostgreSQL; a second one goes through
``wire_count``, which counts. What the processes do without any execution is measured first, and
taken off.
Processor time says more than executions a second, because the client shares the machine.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from tests.acceptance.server import ROOT
from tests.benchmarks.wire_count import Counted, WireCount
from tests.chaos.shapes import FUNCTIONS
from tests.chaos.team_server import TeamServer, machine_arn
from tests.postgres import Postgres, address

_TICKS = os.sysconf("SC_CLK_TCK")
_ROLE = "arn:aws:iam::123456789012:role/benchmark"
_ECHO = {"Type": "Task", "Resource": "arn:aws:lambda:us-east-1:123456789012:function:echo"}
_EACH = {"StartAt": "Echo", "States": {"Echo": {**_ECHO, "End": True}}}
_OF_URL = json.loads(json.dumps(_EACH).replace("function:echo", "function:far"))
_ITEMS = {"Type": "Pass", "Result": [3, 1, 2, 5, 4], "ResultPath": "$.items", "Next": "Map"}
_MAP = {"Type": "Map", "ItemsPath": "$.items", "ItemProcessor": _EACH, "End": True}
_ACTIVITY = "arn:aws:states:us-east-1:123456789012:activity:work"
_POLLERS = 4
SHAPES: dict[str, dict[str, Any]] = {
    "pass": {"StartAt": "Pass", "States": {"Pass": {"Type": "Pass", "End": True}}},
    "function": _EACH,
    "map": {"StartAt": "Items", "States": {"Items": _ITEMS, "Map": _MAP}},
    "url": _OF_URL,
    "urls": {
        "StartAt": "Items",
        "States": {"Items": _ITEMS, "Map": {**_MAP, "ItemProcessor": _OF_URL}},
    },
    "activity": {
        "StartAt": "Work",
        "States": {"Work": {"Type": "Task", "Resource": _ACTIVITY, "End": True}},
    },
}
_NAMES = {
    "pass": "1 Pass",
    "function": "1 function",
    "map": "Map of 5 functions",
    "url": "1 function at a URL",
    "urls": "Map of 5 functions at a URL",
    "activity": "1 activity task",
}
_IDLE_S = 4.0
_SETTLE_S = 4.0  # processes that have just begun still ask for what they remember later
_LIMIT_S = 120


class Used(NamedTuple):
    """Processor time of the processes, in seconds."""

    web: float
    worker: float
    postgres: float

    def since(self, before: Used) -> Used:
        """Return what was used since then."""
        return Used(*(now - then for now, then in zip(self, before, strict=True)))


def _processor_s(pid: int) -> float:
    """Return the processor time of a process and of those of its children that have ended."""
    with contextlib.suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, fields[11:15])) / _TICKS
    return 0.0


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


class Yard:
    """One web process and workers on a PostgreSQL, and the client's connections."""

    def __init__(self, folder: Path, server: Postgres, url: str, workers: int) -> None:
        """Start them; ``url``: how they reach the PostgreSQL."""
        folder.mkdir()
        self._server = server
        self._processes = TeamServer(folder, url)
        command = [sys.executable, "-m", "tests.benchmarks._url_function"]
        self._far = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        assert self._far.stdout is not None
        far = f"http://127.0.0.1:{int(self._far.stdout.readline())}/invocations"
        self._processes.env["STATEYARD_FUNCTIONS"] = json.dumps({**FUNCTIONS, "far": far})
        self._processes.start_web()
        self._processes.client()
        self._key = Credentials(*self._processes._key)
        self._local = threading.local()
        self._pollers = 0
        self.call("CreateActivity", name="work")
        for name, definition in SHAPES.items():
            text = json.dumps(definition)
            self.call("CreateStateMachine", name=name, definition=text, roleArn=_ROLE)
        self._processes.start_workers(workers)

    def stop(self) -> None:
        """End the processes."""
        self._processes.stop()
        self._far.kill()
        self._far.wait()

    def used(self) -> Used:
        """Return the processor time until now."""
        assert self._processes.web is not None
        assert self._processes.workers is not None
        workers = [self._processes.workers.pid, *self._processes.worker_pids()]
        pid_file = (self._server.folder / "postmaster.pid").read_text()
        postmaster = int(pid_file.split("\n", 1)[0])
        own = [postmaster, *_children(postmaster)]
        return Used(
            _processor_s(self._processes.web.pid),
            sum(map(_processor_s, workers)),
            sum(map(_processor_s, own)),
        )

    def call(self, action: str, **params: Any) -> Any:
        """Make a signed call on this thread's connection."""
        if not hasattr(self._local, "connection"):
            self._local.connection = http.client.HTTPConnection(
                "127.0.0.1", self._processes.port, timeout=60
            )
        body = json.dumps(params)
        headers = {
            "Content-Type": "application/x-amz-json-1.0",
            "X-Amz-Target": f"AWSStepFunctions.{action}",
        }
        url = f"http://127.0.0.1:{self._processes.port}/"
        request = AWSRequest("POST", url, data=body, headers=headers)
        SigV4Auth(self._key, "states", "us-east-1").add_auth(request)
        connection: http.client.HTTPConnection = self._local.connection
        connection.request("POST", "/", body, dict(request.headers.items()))
        answer = connection.getresponse()
        data = answer.read()
        if answer.status != http.client.OK:
            raise SystemExit(f"{action}: {answer.status} {data[:300]!r}")
        return json.loads(data)

    def _work(self) -> None:
        """Answer tasks of the activity until the server ends."""
        with contextlib.suppress(OSError, http.client.HTTPException):
            while True:
                task = self.call("GetActivityTask", activityArn=_ACTIVITY)
                if task.get("taskToken"):
                    self.call("SendTaskSuccess", taskToken=task["taskToken"], output="{}")

    def run(self, shape: str, executions: int, clients: int) -> float:
        """Start executions and wait until all have succeeded; return how many seconds it took."""
        self._local = threading.local()  # the server has closed what nobody used for a minute
        arn = machine_arn(shape)
        for _ in range(self._pollers, _POLLERS if shape == "activity" else 0):
            threading.Thread(target=self._work, daemon=True).start()
            self._pollers += 1
        begun = time.perf_counter()

        def start(number: int) -> None:
            self.call("StartExecution", stateMachineArn=arn, input=f'{{"n": {number}}}')

        with ThreadPoolExecutor(clients) as pool:
            list(pool.map(start, range(executions)))
        deadline = time.monotonic() + _LIMIT_S
        parameters = {"stateMachineArn": arn, "statusFilter": "RUNNING", "maxResults": 1}
        while self.call("ListExecutions", **parameters)["executions"]:
            if time.monotonic() > deadline:
                raise SystemExit("not all executions ended")
            time.sleep(0.1)
        lasted = time.perf_counter() - begun
        parameters["statusFilter"] = "FAILED"
        if self.call("ListExecutions", **parameters)["executions"]:
            raise SystemExit(f"an execution of {shape} failed")
        return lasted


def _measure_time(
    yard: Yard, shapes: list[str], executions: int, clients: int
) -> dict[str, tuple[Used, float]]:
    """Return shape -> processor time of one execution in seconds, and executions a second."""
    time.sleep(_SETTLE_S)
    before = yard.used()
    time.sleep(_IDLE_S)
    idle = yard.used().since(before)
    results = {}
    for shape in shapes:
        yard.run(shape, 50, clients)  # what is slow the first time
        before = yard.used()
        lasted = yard.run(shape, executions, clients)
        used = yard.used().since(before)
        own = (now - rest * lasted / _IDLE_S for now, rest in zip(used, idle, strict=True))
        results[shape] = (Used(*(max(each, 0.0) / executions for each in own)), executions / lasted)
    return results


def _measure_wire(
    yard: Yard, wire: WireCount, shapes: list[str], executions: int, clients: int
) -> tuple[dict[str, tuple[float, float]], float]:
    """Return shape -> statements and round trips of one execution, and statements a second idle."""
    time.sleep(_SETTLE_S)
    before = wire.counted()
    time.sleep(_IDLE_S)
    idle = [(now - then) / _IDLE_S for now, then in zip(wire.counted(), before, strict=True)]
    results = {}
    for shape in shapes:
        yard.run(shape, 50, clients)
        before = wire.counted()
        lasted = yard.run(shape, executions, clients)
        said = Counted(*(now - then for now, then in zip(wire.counted(), before, strict=True)))
        own = (count - rate * lasted for count, rate in zip(said, idle, strict=True))
        statements, trips = (count / executions for count in own)
        results[shape] = (statements, trips)
    return results, idle[0]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--executions", type=int, default=400)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--shapes", default=",".join(SHAPES))
    parser.add_argument("--workers", type=int, default=1)
    options = parser.parse_args()
    shapes = [name for name in options.shapes.split(",") if name]
    if unknown := sorted(set(shapes) - set(SHAPES)):
        parser.error(f"--shapes: got {', '.join(unknown)}; there are {', '.join(SHAPES)}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        server = Postgres(folder / "postgres")
        try:
            yard = Yard(folder / "plain", server, server.url, options.workers)
            try:
                times = _measure_time(yard, shapes, options.executions, options.clients)
            finally:
                yard.stop()
            (folder / "wire").mkdir()
            with WireCount(folder / "wire", server.folder) as wire:
                server.ask("DROP SCHEMA public CASCADE")
                server.ask("CREATE SCHEMA public")
                url = address(wire.folder)
                yard = Yard(folder / "counted", server, url, options.workers)
                try:
                    counts, idle = _measure_wire(
                        yard, wire, shapes, options.executions, options.clients
                    )
                finally:
                    yard.stop()
        finally:
            server.stop()
    print("| shape | web, ms | workers, ms | PostgreSQL, ms | sum, ms |", end="")
    print(" statements | round trips | executions/s |\n|---|---|---|---|---|---|---|---|")
    for shape in shapes:
        used, rate = times[shape]
        cells = [f"{each * 1000:.1f}" for each in (*used, sum(used))]
        cells += [f"{each:.1f}" for each in counts[shape]]
        print(f"| {_NAMES[shape]} | {' | '.join(cells)} | {rate:.0f} |")
    print(f"Idle: {idle:.0f} statements a second.")


if __name__ == "__main__":
    main()
