"""A real ``manage.py up`` process for tests: start, talk to it, kill it, start it again."""

from __future__ import annotations

import configparser
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config

from tests import initial_database
from tests.waiting import PATIENCE_S

ROOT = Path(__file__).parent.parent.parent
START_S = 180.0
"""Seconds that a server may take to start; on a loaded machine it needs half a minute."""


def free_port() -> int:
    """Return a port nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Server:
    """``manage.py up`` on its own port and data folder.

    ``migrated``: the database of a new data folder is a copy, and not made by ``up``.
    """

    def __init__(
        self,
        data: Path,
        port: int | None = None,
        *,
        options: tuple[str, ...] = (),
        migrated: bool = True,
        **env: str,
    ) -> None:
        self.data = data
        self.migrated = migrated
        self.options = options
        self.port = port or free_port()
        self.env = env
        self.url = f"http://127.0.0.1:{self.port}"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> Server:
        """Start the process and wait until it answers."""
        if self.migrated:
            initial_database.copy_to(self.data)
        log = (self.data.parent / f"{self.data.name}.log").open("ab")
        place = ["--port", str(self.port), "--data", str(self.data)]
        self.process = subprocess.Popen(
            [*self._command(), *place, *self.options],
            cwd=ROOT,
            env={**os.environ, "DJANGO_ALLOW_ASYNC_UNSAFE": "", **self.env},
            stdout=log,
            stderr=log,
            stdin=subprocess.DEVNULL,
        )
        log.close()
        self._wait()
        return self

    def _command(self) -> list[str]:
        return [sys.executable, "manage.py", "up"]

    def _wait(self) -> None:
        assert self.process is not None
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline:
            try:
                with urllib.request.urlopen(f"{self.url}/login/", timeout=2):
                    return
            except OSError:
                if self.process.poll() is not None:
                    break
                time.sleep(0.05)
        raise RuntimeError(f"the server did not come up: {self.log()[-3000:]}")

    def log(self) -> str:
        """Return what the process printed."""
        return (self.data.parent / f"{self.data.name}.log").read_text(encoding="utf-8")

    def kill(self) -> None:
        """Kill -9: no clean-up of any kind."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def stop(self) -> int:
        """Ask it to end, as Ctrl-C does, and return its exit code."""
        assert self.process is not None
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        return self.process.wait(timeout=PATIENCE_S)

    def processor_s(self) -> float:
        """Return the processor time that the process has taken, in seconds (Linux)."""
        assert self.process is not None
        stat = Path(f"/proc/{self.process.pid}/stat").read_text(encoding="ascii")
        user, system = stat.rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    def login_url(self) -> str:
        """Return the one-time login link."""
        return (self.data / "login-url").read_text(encoding="utf-8").strip()

    def keys(self, profile: str = "stateyard") -> tuple[str, str]:
        """Return access key id and secret of a profile of the credentials file."""
        parser = configparser.ConfigParser()
        parser.read(self.data / "credentials")
        section = parser[profile]
        return section["aws_access_key_id"], section["aws_secret_access_key"]

    def client(self, service: str = "stepfunctions", **more: Any) -> Any:
        """Return a boto3 client with the owner's key; ``profile``: that of the samples' project."""
        key, secret = self.keys(more.pop("profile", "stateyard"))
        return boto3.client(
            service,
            endpoint_url=self.url,
            region_name=more.pop("region", "us-east-1"),
            aws_access_key_id=more.pop("key", key),
            aws_secret_access_key=more.pop("secret", secret),
            config=Config(retries={"max_attempts": 0}, inject_host_prefix=False),
            **more,
        )


def wait_for_end(client: Any, arn: str, seconds: float = PATIENCE_S) -> dict[str, Any]:
    """Return DescribeExecution once the execution has ended."""
    deadline = time.monotonic() + seconds
    while True:
        answer: dict[str, Any] = client.describe_execution(executionArn=arn)
        if answer["status"] != "RUNNING":
            return answer
        if time.monotonic() > deadline:
            history = client.get_execution_history(executionArn=arn, reverseOrder=True)
            raise AssertionError(f"still running: {history['events'][:5]}")
        time.sleep(0.05)


def history(client: Any, arn: str) -> list[dict[str, Any]]:
    """Return all events of an execution."""
    pages = client.get_paginator("get_execution_history").paginate(executionArn=arn)
    return [event for page in pages for event in page["events"]]
