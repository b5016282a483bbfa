"""Measure the check of a signature beside the time that botocore takes to make it.

``python -m tests.benchmarks.signature_cost [--calls 2000]``: microseconds a call, by the size of
the body; the bar is 150 for what SDKs send, and hashing the body is all that grows.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import TYPE_CHECKING

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from console.awsapi import sigv4

if TYPE_CHECKING:
    from collections.abc import Callable

BAR_US = 150
ROUNDS = 7
SIZES = (2, 1_000, 10_000, 262_144)
KEY, SECRET = "AKIAEXAMPLE", "a" * 40
_HEADERS = {
    "Content-Type": "application/x-amz-json-1.0",
    "X-Amz-Target": "AWSStepFunctions.StartExecution",
    "Host": "127.0.0.1:8083",
}


def sign(body: bytes) -> AWSRequest:
    """Sign a call as boto3 does."""
    request = AWSRequest("POST", "http://127.0.0.1:8083/", data=body, headers=dict(_HEADERS))
    SigV4Auth(Credentials(KEY, SECRET), "states", "us-east-1").add_auth(request)
    return request


def checker(body: bytes) -> Callable[[], object]:
    """Return a function that checks one signed call."""
    headers = {name.lower(): [value] for name, value in sign(body).headers.items()}
    now_s = time.time()
    return lambda: sigv4.verify_signature(headers, body, lambda _: SECRET, lambda _: True, now_s)


def cost_us(act: Callable[[], object], calls: int) -> float:
    """Return the microseconds of processor time that one call takes; others may be busy, too."""
    begun = time.process_time()
    for _ in range(calls):
        act()
    return (time.process_time() - begun) / calls * 1e6


def measure(size: int, calls: int) -> tuple[list[float], list[float]]:
    """Return what signing and checking cost, in rounds that take turns."""
    body = b"x" * size
    check = checker(body)
    pairs = [(cost_us(lambda: sign(body), calls), cost_us(check, calls)) for _ in range(ROUNDS)]
    return [signing for signing, _ in pairs], [checking for _, checking in pairs]


def main() -> None:
    """Print both for each size; fail if the median check of a usual body is above the bar."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=2_000)
    calls = parser.parse_args().calls
    slow = False
    for size in SIZES:
        signing, checking = measure(size, max(calls * 1_000 // max(size, 1_000), 50))
        low, middle, high = min(checking), statistics.median(checking), max(checking)
        slow = slow or (size <= 10_000 and middle > BAR_US)
        print(
            f"{size:>7} bytes: signing {statistics.median(signing):6.1f} us, checking "
            f"{middle:6.1f} us ({low:.1f} to {high:.1f}), {middle / statistics.median(signing):.2f}"
            " of it"
        )
    if slow:
        raise SystemExit(f"above {BAR_US} us")


if __name__ == "__main__":
    main()
