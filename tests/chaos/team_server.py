"""A team's server for the chaos suite: real processes that are killed and restarted."""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config

from tests import initial_database
from tests.acceptance.server import ROOT, START_S, free_port
from tests.chaos.shapes import ACTIVITY, CALLBACK, CHILD, DEADLY, FUNCTIONS, SHAPES, TIMER
from tests.waiting import PATIENCE_S

_ACCOUNT = "123456789012"
_CRASHES = [-signal.SIGSEGV, -signal.SIGABRT, -signal.SIGBUS, -signal.SIGILL, -signal.SIGFPE]
"""What a process ends with that was not asked to and was not killed."""
_PREFIX = f"arn:aws:states:us-east-1:{_ACCOUNT}:"


class TeamServer:
    """Web and workers on a PostgreSQL, or ``up`` on SQLite (``url`` is None)."""

    def __init__(self, folder: Path, url: str | None, *, lease_s: float = 10.0) -> None:
        self.folder = folder
        self.root = ROOT
        self.migrated = True  # on SQLite: a new database is a copy, and not made by ``up``
        self.url = url
        self.port = free_port()
        self.calls = folder / "calls.jsonl"
        self.calls.touch()
        self.env = {
            **os.environ,
            "STATEYARD_SECRET": secrets.token_hex(32),
            "STATEYARD_FUNCTIONS": json.dumps(FUNCTIONS),
            "STATEYARD_LEASE_S": str(lease_s),
            "CHAOS_CALLS": str(self.calls),
            "STATEYARD_DATA": str(folder / "data"),
        }
        for name in ("STATEYARD_DATABASE_URL", "DJANGO_ALLOW_ASYNC_UNSAFE"):
            self.env.pop(name, None)
        if url is not None:
            self.env["STATEYARD_DATABASE_URL"] = url
        self.web: subprocess.Popen[bytes] | None = None
        self.workers: subprocess.Popen[bytes] | None = None
        self.others: list[subprocess.Popen[bytes]] = []
        self._key: tuple[str, str] = ("", "")

    # -- processes ---------------------------------------------------------------------------------

    def manage(self, *arguments: str) -> str:
        """Run a management command and return what it printed; raise what it complains of."""
        done = self._run(*arguments)
        if done.returncode and not done.stdout:
            raise RuntimeError(done.stderr)
        return done.stdout

    def complaint(self, *arguments: str) -> str:
        """Run a command that must fail and return what it complains of."""
        done = self._run(*arguments)
        assert done.returncode == 1, done.stdout
        return done.stderr

    def _run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "manage.py", *arguments]
        return subprocess.run(
            command,
            cwd=self.root,
            env=self.env,
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )

    def _start(self, name: str, *arguments: str, **env: str) -> subprocess.Popen[bytes]:
        with (self.folder / f"{name}.log").open("ab") as log:
            command = [sys.executable, "manage.py", *arguments]
            own = {**self.env, **env}
            return subprocess.Popen(command, cwd=self.root, env=own, stdout=log, stderr=log)

    def start_web(self) -> None:
        """Start what serves the API, and wait until it answers."""
        what = "up" if self.url is None else "web"
        if self.url is None and self.migrated:
            initial_database.copy_to(self.folder / "data")
        self.web = self._start("web", what, "--port", str(self.port))
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"http://127.0.0.1:{self.port}/healthz", timeout=2).close()
                return
            if self.web.poll() is not None:
                break
            time.sleep(0.02)
        raise RuntimeError((self.folder / "web.log").read_text()[-3000:])

    def start_workers(self, count: int) -> None:
        """Start so many workers under one that replaces those which die."""
        log = self.folder / "workers.log"
        log.touch()
        before = log.read_text().count(" works\n")
        self.workers = self._start("workers", "worker", "--processes", str(count))
        deadline = time.monotonic() + START_S
        while log.read_text().count(" works\n") < before + count:
            if time.monotonic() > deadline:
                raise RuntimeError(log.read_text()[-3000:])
            time.sleep(0.05)

    def other_worker(self, **env: str) -> subprocess.Popen[bytes]:
        """Start a worker beside the others, with more environment, and wait until it works."""
        name = f"other-{len(self.others)}"
        self.others.append(self._start(name, "worker", **env))
        deadline = time.monotonic() + START_S
        while " works" not in (self.folder / f"{name}.log").read_text():
            if time.monotonic() > deadline:
                raise RuntimeError((self.folder / f"{name}.log").read_text()[-3000:])
            time.sleep(0.05)
        return self.others[-1]

    def worker_pids(self) -> list[int]:
        """Return the numbers of the worker processes."""
        assert self.workers is not None
        path = Path(f"/proc/{self.workers.pid}/task/{self.workers.pid}/children")
        return [int(pid) for pid in path.read_text().split()] if path.exists() else []

    def end_workers(self) -> None:
        """Ask the workers to hand over, and wait until they have."""
        assert self.workers is not None
        self.workers.send_signal(signal.SIGTERM)
        self.workers.wait(PATIENCE_S)

    def end_web(self) -> None:
        """Ask what serves the API to end, and wait until it has."""
        assert self.web is not None
        self.web.send_signal(signal.SIGTERM)
        self.web.wait(PATIENCE_S)

    def kill_web(self) -> None:
        """Kill -9 what serves the API."""
        assert self.web is not None
        self.web.kill()
        self.web.wait()

    def crashes(self) -> list[str]:
        """Return what says that a process crashed, which nobody here had ended that way."""
        problems = []
        if self.web is not None and self.web.poll() in _CRASHES:
            problems.append(f"what serves the API ended with {self.web.poll()}")
        workers = self.folder / "workers.log"
        if workers.exists():
            ends = re.findall(r"a worker died and is replaced.*?status=(\d+)", workers.read_text())
            signals = [-(int(status) & 0x7F) for status in ends]
            problems += [
                f"a worker ended with {number}" for number in signals if number in _CRASHES
            ]
        return problems

    def stop(self) -> None:
        """End everything."""
        for pid in self.worker_pids() if self.workers else []:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        for process in (self.web, self.workers, *self.others):
            if process is not None and process.poll() is None:
                process.send_signal(signal.SIGTERM)
                try:
                    process.wait(10)
                except subprocess.TimeoutExpired:
                    process.kill()

    # -- the API -----------------------------------------------------------------------------------

    def client(self, pool: int = 32) -> Any:
        """Return a boto3 client that neither retries nor checks parameters."""
        if not self._key[0]:
            printed = self.manage("member", "chaos", "--role", "owner", "--key")
            words = dict(line.split(" = ") for line in printed.splitlines() if " = " in line)
            self._key = (words["aws_access_key_id"], words["aws_secret_access_key"])
        return boto3.client(
            "stepfunctions",
            endpoint_url=f"http://127.0.0.1:{self.port}",
            region_name="us-east-1",
            aws_access_key_id=self._key[0],
            aws_secret_access_key=self._key[1],
            config=Config(
                retries={"max_attempts": 0},
                max_pool_connections=pool,
                parameter_validation=False,
                inject_host_prefix=False,
                read_timeout=75,
            ),
        )

    def prepare(self) -> None:
        """Create the state machines and the activity."""
        client = self.client()
        client.create_activity(name=ACTIVITY.rpartition(":")[2])
        for shape in (*SHAPES, CHILD, DEADLY, CALLBACK, TIMER):
            role = f"arn:aws:iam::{_ACCOUNT}:role/chaos"
            client.create_state_machine(name=shape.name, definition=shape.text, roleArn=role)


def machine_arn(name: str) -> str:
    """Return the ARN of a shape's state machine."""
    return f"{_PREFIX}stateMachine:{name}"


def execution_arn(machine: str, name: str) -> str:
    """Return the ARN of an execution."""
    return f"{_PREFIX}execution:{machine}:{name}"
