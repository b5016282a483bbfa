"""Measure the server's memory and threads for an execution that only waits for a callback.

``python -m tests.benchmarks.waiting_cost [--executions 10000]`` (Linux: reads ``/proc``).
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests.acceptance.server import Server

ROLE = "arn:aws:iam::123456789012:role/bench"
SETTLE_S = 10


def status(server: Server, name: str) -> int:
    """Return a number of the process's status: ``VmRSS`` in KiB, ``Threads``."""
    assert server.process is not None
    text = Path(f"/proc/{server.process.pid}/status").read_text(encoding="ascii")
    return int(next(line.split()[1] for line in text.splitlines() if line.startswith(name)))


def machine(client: Any) -> str:
    """Create a machine whose one task waits for its token."""
    parameters = {"FunctionName": "taken", "Payload": {"token.$": "$$.Task.Token"}}
    resource = "arn:aws:states:::lambda:invoke.waitForTaskToken"
    task = {"Type": "Task", "Resource": resource, "Parameters": parameters, "End": True}
    definition = json.dumps({"StartAt": "T", "States": {"T": task}})
    machine = client.create_state_machine(name="waits", definition=definition, roleArn=ROLE)
    arn: str = machine["stateMachineArn"]
    return arn


def submitted(client: Any, arn: str) -> bool:
    """Return whether an execution waits for its callback."""
    told = client.get_execution_history(executionArn=arn, reverseOrder=True, maxResults=1)
    return bool(told["events"][0]["type"] == "TaskSubmitted")


def main() -> None:
    """Start them, wait until all wait, and print what they cost."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--executions", type=int, default=10_000)
    count = parser.parse_args().executions
    functions = json.dumps({"taken": "operator:is_not"})
    with tempfile.TemporaryDirectory() as folder:
        server = Server(Path(folder) / "data", STATEYARD_FUNCTIONS=functions).start()
        try:
            client = server.client()
            arn = machine(client)
            with ThreadPoolExecutor(8) as pool:  # warm: every thread and cache is there
                list(pool.map(lambda _: client.start_execution(stateMachineArn=arn), range(200)))
            time.sleep(SETTLE_S)
            before = status(server, "VmRSS"), status(server, "Threads")
            begun = time.monotonic()
            with ThreadPoolExecutor(8) as pool:
                started = list(
                    pool.map(lambda _: client.start_execution(stateMachineArn=arn), range(count))
                )
            while not all(
                submitted(client, execution["executionArn"]) for execution in started[-100:]
            ):
                time.sleep(0.5)
            took = time.monotonic() - begun
            time.sleep(SETTLE_S)
            after = status(server, "VmRSS"), status(server, "Threads")
        finally:
            server.stop()
    grown = (after[0] - before[0]) / 1024
    print(f"{count} waiting after {took:.0f} s: {grown:+.1f} MB, {after[1] - before[1]:+d} threads")


if __name__ == "__main__":
    main()
