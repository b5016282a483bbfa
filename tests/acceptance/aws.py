"""A server that speaks AWS's protocols for tests: moto, in a process of its own."""

from __future__ import annotations

import subprocess
import sys
import time
import urllib.request
from typing import Any

import boto3

from tests.acceptance.server import START_S, free_port

KEYS = {"access_key_id": "testing", "secret_access_key": "testing"}


class Moto:
    """``moto_server`` on a port of its own."""

    def __init__(self) -> None:
        self.url = f"http://127.0.0.1:{free_port()}"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> Moto:
        """Start it and wait until it answers."""
        command = [sys.executable, "-W", "ignore", "-m", "moto.server", "-p", self.url[17:]]
        self.process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline:
            try:
                with urllib.request.urlopen(f"{self.url}/moto-api/", timeout=2):
                    return self
            except OSError:
                time.sleep(0.1)
        raise RuntimeError("moto did not come up")

    def stop(self) -> None:
        """End it."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def client(self, service: str) -> Any:
        """Return a boto3 client for one of its services."""
        return boto3.client(
            service,
            endpoint_url=self.url,
            region_name="us-east-1",
            aws_access_key_id=KEYS["access_key_id"],
            aws_secret_access_key=KEYS["secret_access_key"],
        )
