"""Measure how the cost of a Map grows: ten times the items should cost ten times as much.

``python -m tests.benchmarks.map_cost [--items 1000,10000]`` runs distributed Maps of one Pass on a
server of its own (durable SQLite) and prints seconds and bytes written (``/proc/PID/io``; Linux).
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.acceptance.server import Server, wait_for_end

ROLE = "arn:aws:iam::123456789012:role/bench"


def machine() -> str:
    """Return a machine whose input is the number of items of its Map."""
    child = {"StartAt": "P", "States": {"P": {"Type": "Pass", "End": True}}}
    processor = {"ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"}, **child}
    state = {
        "Type": "Map",
        "QueryLanguage": "JSONata",
        "Items": "{% [1..$states.input] %}",
        "ItemProcessor": processor,
        "Output": "{% $count($states.result) %}",
        "End": True,
    }
    return json.dumps({"StartAt": "M", "States": {"M": state}})


def measure(server: Server, client: Any, arn: str, items: int) -> tuple[float, int]:
    """Return seconds and bytes written of one run."""
    before, begun = written(server), time.monotonic()
    started = client.start_execution(stateMachineArn=arn, input=json.dumps(items))
    ended = wait_for_end(client, started["executionArn"], 600)
    if ended["status"] != "SUCCEEDED" or json.loads(ended["output"]) != items:
        raise SystemExit(f"{items} items: {ended['status']} {ended.get('cause')}")
    return time.monotonic() - begun, written(server) - before


def written(server: Server) -> int:
    """Return the bytes the server has written so far."""
    assert server.process is not None
    text = Path(f"/proc/{server.process.pid}/io").read_text(encoding="ascii")
    return int(dict(line.split(": ") for line in text.splitlines())["wchar"])


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", default="1000,10000")
    sizes = [int(one) for one in parser.parse_args().items.split(",")]
    with tempfile.TemporaryDirectory() as folder:
        server = Server(Path(folder) / "data").start()
        try:
            client = server.client()
            made = client.create_state_machine(name="map", definition=machine(), roleArn=ROLE)
            found = [measure(server, client, made["stateMachineArn"], size) for size in sizes]
        finally:
            server.stop()
    for size, (seconds, size_bytes) in zip(sizes, found, strict=True):
        ratio = f"{seconds / found[0][0]:.1f} x time, {size_bytes / found[0][1]:.1f} x bytes"
        print(f"{size:>7} items  {seconds:7.2f} s  {size_bytes / 1e6:8.1f} MB  {ratio}")


if __name__ == "__main__":
    main()
