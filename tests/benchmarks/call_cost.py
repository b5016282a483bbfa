"""Measure the processor time of an HTTP call on a kept connection: ours, urllib3's and httpx's.

``python -m tests.benchmarks.call_cost [--calls 300] [--rounds 9] [--threads 8]`` calls a function
at a URL (another process) as a worker does, with each client in turn, and prints medians. With
threads, the clients also pay for the locks and the changes of threads in a busy worker.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import django
import httpx
import urllib3

from tests.acceptance.server import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable

_BODY = b'{"n": 1}'
_HEADERS = {
    "Content-Type": "application/json",
    "X-Amz-Invocation-Type": "RequestResponse",
    "Stateyard-Idempotency-Key": "a" * 40,
}


def _clients(url: str) -> dict[str, Callable[[], bytes]]:
    """Return name -> function that makes a call and returns the response's body."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    django.setup()
    from console.integrations import outbound

    by_httpx = httpx.Client(trust_env=False, headers={"Accept-Encoding": "gzip"})
    by_urllib3 = urllib3.PoolManager(maxsize=64, retries=False)

    def call_ours() -> bytes:
        most = 6 * 1024 * 1024
        return outbound.send_request(
            "POST", url, 60, most=most, headers=_HEADERS, content=_BODY
        ).body

    def call_urllib3() -> bytes:
        return by_urllib3.request("POST", url, body=_BODY, headers=_HEADERS, timeout=60).data

    def call_httpx() -> bytes:
        return by_httpx.post(url, content=_BODY, headers=_HEADERS, timeout=60).content

    return {"ours": call_ours, "urllib3": call_urllib3, "httpx": call_httpx}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--threads", type=int, default=8)
    options = parser.parse_args()
    command = [sys.executable, "-m", "tests.benchmarks._url_function"]
    function = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert function.stdout is not None
    clients = _clients(f"http://127.0.0.1:{int(function.stdout.readline())}/invocations")
    took: dict[tuple[str, int], list[float]] = {}
    for _ in range(options.rounds):
        for threads in (1, options.threads):
            for name, call in clients.items():
                with ThreadPoolExecutor(threads) as pool:
                    begun = time.process_time()
                    list(pool.map(lambda _, call=call: call(), range(options.calls)))
                    lasted = time.process_time() - begun
                took.setdefault((name, threads), []).append(lasted / options.calls * 1000)
    function.kill()
    function.wait()
    print(f"| client | 1 thread, ms | {options.threads} threads, ms |\n|---|---|---|")
    for name in clients:
        cells = (statistics.median(took[name, threads]) for threads in (1, options.threads))
        print(f"| {name} | {' | '.join(f'{each:.3f}' for each in cells)} |")


if __name__ == "__main__":
    main()
