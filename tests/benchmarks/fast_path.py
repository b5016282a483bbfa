"""Measure what each trick of the fast path gains over a server without that trick.

``python -m tests.benchmarks.fast_path [--rounds 3] [--tricks cursor,rows]`` starts the server as it
is and one server for each trick with that trick replaced (``plain_server``). They take the same
load in turns: a chain of ten Pass states by 16 clients, then single executions one after another.
For each the median of the rounds, and its ratio to the server as it is:

* ``ms/execution``: the processor time of the server's process, which others on the machine disturb
  least;
* ``/s``: executions a second by 16 clients;
* ``p50 ms``: from StartExecution until DescribeExecution says SUCCEEDED.

A ratio of 1.20 in one of them says that the trick earns its lines.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from tests.acceptance.server import ROOT, free_port
from tests.benchmarks.plain_server import TRICKS

CLIENTS = 16
ROLE = "arn:aws:iam::123456789012:role/benchmark"
_TICKS = os.sysconf("SC_CLK_TCK")


def chain(length: int) -> dict[str, Any]:
    """Return a definition of so many Pass states."""
    states: dict[str, Any] = {
        f"Pass{number}": {"Type": "Pass", "Next": f"Pass{number + 1}"} for number in range(length)
    }
    last = f"Pass{length - 1}"
    states[last] = {"Type": "Pass", "End": True}
    return {"StartAt": "Pass0", "States": states}


class Round(NamedTuple):
    """What one server took for the load, once."""

    cpu_ms: float
    rate: float
    latency_ms: float


class Server:
    """``manage.py up`` with one trick replaced, in a folder of its own."""

    def __init__(self, trick: str, folder: Path) -> None:
        """Start it and make its two state machines."""
        self.port = free_port()
        self.data = folder / trick
        env = {**os.environ, "STATEYARD_DATA": str(self.data)}
        env.pop("STATEYARD_DATABASE_URL", None)
        command = [sys.executable, "-m", "tests.benchmarks.plain_server", trick]
        self.log = folder / f"{trick}.log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [*command, "up", "--empty", "--port", str(self.port)],
                cwd=ROOT,
                env=env,
                stdout=log,
                stderr=log,
            )
        self._wait()
        self.key = self._make_key(env)
        self.local = threading.local()
        self.chain = self._create("chain", chain(10))
        self.single = self._create("single", chain(1))

    def _wait(self) -> None:
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and self.process.poll() is None:
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"http://127.0.0.1:{self.port}/healthz", timeout=2).close()
                return
            time.sleep(0.05)
        raise SystemExit(self.log.read_text()[-3000:])

    def _make_key(self, env: dict[str, str]) -> Credentials:
        command = [sys.executable, "manage.py", "member", "bench", "--role", "owner", "--key"]
        done = subprocess.run(
            command, cwd=ROOT, env=env, capture_output=True, text=True, check=True
        )
        words = dict(line.split(" = ") for line in done.stdout.splitlines() if " = " in line)
        return Credentials(words["aws_access_key_id"], words["aws_secret_access_key"])

    def _create(self, name: str, definition: dict[str, Any]) -> str:
        machine = self.call(
            "CreateStateMachine", name=name, definition=json.dumps(definition), roleArn=ROLE
        )
        return str(machine["stateMachineArn"])

    def call(self, action: str, **params: Any) -> Any:
        """Make a signed call on this thread's connection."""
        connection = getattr(self.local, "connection", None)
        if connection is None:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
            self.local.connection = connection
        body = json.dumps(params)
        headers = {
            "Content-Type": "application/x-amz-json-1.0",
            "X-Amz-Target": f"AWSStepFunctions.{action}",
        }
        url = f"http://127.0.0.1:{self.port}/"
        request = AWSRequest("POST", url, data=body, headers=headers)
        SigV4Auth(self.key, "states", "us-east-1").add_auth(request)
        connection.request("POST", "/", body, dict(request.headers.items()))
        answer = connection.getresponse()
        data = answer.read()
        if answer.status != 200:
            log = self.log.read_text()[-3000:]
            raise SystemExit(f"{action}: {answer.status} {data[:300]!r}\n{log}")
        return json.loads(data)

    def run(self, machine: str, pause_s: float) -> None:
        """Start an execution and ask until it has succeeded."""
        arn = self.call("StartExecution", stateMachineArn=machine)["executionArn"]
        while (status := self.call("DescribeExecution", executionArn=arn)["status"]) == "RUNNING":
            time.sleep(pause_s)
        assert status == "SUCCEEDED"

    def cpu_s(self) -> float:
        """Return the processor time of the process until now, in seconds."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    def take(self, executions: int) -> Round:
        """Give it the load once."""
        self.local = threading.local()  # the server has closed what nobody used for a minute
        before, begun = self.cpu_s(), time.perf_counter()
        with ThreadPoolExecutor(CLIENTS) as pool:
            list(pool.map(lambda _: self.run(self.chain, 0.02), range(executions)))
        lasted, cpu = time.perf_counter() - begun, self.cpu_s() - before
        times = []
        for _ in range(50):
            begun = time.perf_counter()
            self.run(self.single, 0.001)
            times.append(time.perf_counter() - begun)
        return Round(cpu / executions * 1e3, executions / lasted, statistics.median(times) * 1e3)

    def stop(self) -> None:
        """End it."""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(30)


def measure(names: list[str], rounds: int, executions: int) -> dict[str, list[Round]]:
    """Return the rounds of each server; they take turns, so all meet the same machine."""
    results: dict[str, list[Round]] = {name: [] for name in names}
    with tempfile.TemporaryDirectory() as folder:
        servers: dict[str, Server] = {}
        try:
            for name in names:
                servers[name] = Server(name, Path(folder))
                servers[name].take(50)  # what is slow the first time
            for _ in range(rounds):
                for name, server in servers.items():
                    results[name].append(server.take(executions))
        finally:
            for server in servers.values():
                server.stop()
    return results


def report(results: dict[str, list[Round]]) -> None:
    """Print the medians, and the ratio by which the server as it is does better."""
    medians = {
        name: Round(*(statistics.median(values) for values in zip(*rounds, strict=True)))
        for name, rounds in results.items()
    }
    own = medians["none"]
    print("| plain instead of | ms/execution | ratio | /s | ratio | p50 ms | ratio |")
    print("|---|---|---|---|---|---|---|")
    for name, plain in medians.items():
        print(
            f"| {name} | {plain.cpu_ms:.2f} | {plain.cpu_ms / own.cpu_ms:.2f} "
            f"| {plain.rate:.0f} | {own.rate / plain.rate:.2f} "
            f"| {plain.latency_ms:.2f} | {plain.latency_ms / own.latency_ms:.2f} |"
        )


def main() -> None:
    """Time the tricks and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--executions", type=int, default=300)
    parser.add_argument("--tricks", default=",".join(name for name in TRICKS if name != "none"))
    options = parser.parse_args()
    names = ["none", *(name for name in options.tricks.split(",") if name)]
    unknown = sorted(set(names) - set(TRICKS))
    if unknown:
        parser.error(f"--tricks: got {', '.join(unknown)}; there are {', '.join(TRICKS)}")
    report(measure(names, options.rounds, options.executions))


if __name__ == "__main__":
    main()
