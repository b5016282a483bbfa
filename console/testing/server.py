"""Start a server for tests on a free port, run state machines in it, and stop it."""

from __future__ import annotations

import configparser
import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

from console.config import local_options
from console.testing.function_server import FunctionServer
from console.testing.machine_run import MachineRun

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_PACKAGES = Path(__file__).resolve().parents[2]
_START_S = 180.0
_STOP_S = 20.0
_ROLE = "arn:aws:iam::123456789012:role/tests"
_ENDS = {
    "ExecutionSucceeded": "SUCCEEDED",
    "ExecutionFailed": "FAILED",
    "ExecutionAborted": "ABORTED",
    "ExecutionTimedOut": "TIMED_OUT",
}
"""The last event of a history -> the status of its execution."""
_direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
"""Uses no proxy: the server is on this machine."""
_CODE = """
import sys
sys.path.append(sys.argv.pop(1))
from console.command_line import main
main()
"""
"""Finds this very package, even if not installed, and nothing in the current folder."""


class StateyardServer:
    """A server process with an empty data folder: ``stateyard up --empty --port 0``.

    ``data``: its folder, which may have ``targets.json``, ``functions.json`` and others. Variables
    ``STATEYARD_...`` of the tests' environment are not passed to it.
    """

    def __init__(self, data: Path) -> None:
        self.data = data
        self.region = "us-east-1"
        self._functions = FunctionServer()
        self._log = data / "server.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._client: Any = None
        self.url = ""

    # -- life --------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the process and wait until it is ready; raise RuntimeError with its log."""
        (self.data / "address").unlink(missing_ok=True)
        words = ["up", "--empty", "--port", "0", "--data", str(self.data)]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(  # noqa: S603 - our own command
                [sys.executable, "-P", "-c", _CODE, str(_PACKAGES), *words],
                env=_environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        try:
            self._wait_until_ready()
        except BaseException:  # Ctrl-C, too: no process stays behind
            self.stop()
            raise

    def _wait_until_ready(self) -> None:
        assert self._process is not None  # noqa: S101 - for the type checker
        deadline = time.monotonic() + _START_S
        while not self._is_ready():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the server did not start:\n{self.log()[-3000:]}")
            time.sleep(0.05)

    def stop(self) -> None:
        """Stop the process; kill it if it does not end."""
        self._functions.close()
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def log(self) -> str:
        """Return the server's output."""
        return self._log.read_text(encoding="utf-8", errors="replace")

    def _is_ready(self) -> bool:
        address = self.data / "address"
        self.url = address.read_text(encoding="utf-8").strip() if address.exists() else ""
        if not self.url:
            return False
        try:
            with _direct.open(f"{self.url}/readyz", timeout=5):
                return True
        except OSError:
            return False

    # -- clients -----------------------------------------------------------------------------------

    def client(self, service: str = "stepfunctions", **more: Any) -> Any:
        """Return a boto3 client with the key of the server's owner."""
        import boto3
        from botocore.config import Config

        profile = self._profile()
        defaults = {
            "endpoint_url": self.url,
            "region_name": self.region,
            "aws_access_key_id": profile["aws_access_key_id"],
            "aws_secret_access_key": profile["aws_secret_access_key"],
            "config": Config(inject_host_prefix=False, proxies={}),
        }
        return boto3.client(service, **(defaults | more))

    @property
    def environment(self) -> dict[str, str]:
        """The environment variables that point AWS clients to this server."""
        return {
            "AWS_SHARED_CREDENTIALS_FILE": str(self.data / "credentials"),
            "AWS_PROFILE": "stateyard",
            "AWS_ENDPOINT_URL_SFN": self.url,
            "AWS_REGION": self.region,
        }

    def _profile(self) -> Mapping[str, str]:
        parser = configparser.ConfigParser(interpolation=None)
        parser.read(self.data / "credentials", encoding="utf-8")
        return parser["stateyard"]

    @property
    def _api(self) -> Any:
        if self._client is None:
            self._client = self.client()
        return self._client

    # -- state machines ----------------------------------------------------------------------------

    def register(self, functions: Mapping[str, Callable[..., Any] | str]) -> None:
        """Register functions for Tasks, by name.

        A callable runs in the tests' process. A text is a target as in ``functions.json``: a URL,
        or ``module:callable`` for a callable in the server.
        """
        path = self.data / "functions.json"
        entries = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        for name, function in functions.items():
            if isinstance(function, str):
                entries[name] = function
            else:
                self._functions.functions[name] = function
                entries[name] = self._functions.address(name)
        new = path.with_suffix(".new")
        new.write_text(json.dumps(entries, indent=2), encoding="utf-8")
        new.replace(path)  # the server reads the old file or the new one, never half of one

    def create_machine(
        self, definition: str | Mapping[str, Any], *, name: str = "", machine_type: str = "STANDARD"
    ) -> str:
        """Create a state machine, by default with a unique name; return its ARN."""
        text = definition if isinstance(definition, str) else json.dumps(definition)
        machine = self._api.create_state_machine(
            name=name or f"test-{uuid.uuid4().hex[:12]}",
            definition=text,
            roleArn=_ROLE,
            type=machine_type,
        )
        return str(machine["stateMachineArn"])

    def run_machine(
        self,
        definition: str | Mapping[str, Any],
        data: Any = None,
        *,
        input_name: str = "",
        functions: Mapping[str, Callable[..., Any] | str] | None = None,
        machine_type: str = "STANDARD",
        faults: Sequence[Mapping[str, Any]] = (),
        seed: int = 0,
        timeout_s: float = 60,
    ) -> MachineRun:
        """Run a definition with ``data`` as its input; return the result.

        ``input_name``: ``MACHINE/NAME`` of a named input, instead of ``data``. ``functions``: as
        for ``register``. ``machine_type``: EXPRESS runs it by StartSyncExecution, without a
        history. ``faults``: errors and latency to inject, as for ``engine.run``; ``seed``: for
        their rates. Raise TimeoutError if it has not ended after ``timeout_s``, ValueError for an
        invalid fault.
        """
        if functions:
            self.register(functions)
        machine = self.create_machine(definition, machine_type=machine_type)
        if input_name and data is not None:
            raise ValueError("run_machine: got data and input_name, wanted one of them")
        text = (
            self.named_input(input_name) if input_name else json.dumps({} if data is None else data)
        )
        since = len(self._functions.invocations)
        if faults:
            document = json.dumps({"faults": [*faults], "seed": seed})
            body = {"stateMachineArn": machine, "input": text, "faults": document}
            answer = self._own_api("POST", "/api/faults", json.dumps(body))
            return self._ended(answer["executionArn"], timeout_s, since)
        if machine_type == "EXPRESS":
            ended = self._api.start_sync_execution(stateMachineArn=machine, input=text)
            return self._run(ended, (), since)
        arn = self._api.start_execution(stateMachineArn=machine, input=text)["executionArn"]
        return self._ended_at_once(arn, since) or self._ended(arn, timeout_s, since)

    # -- named inputs ------------------------------------------------------------------------------

    def save_input(self, machine: str, name: str, data: Any) -> str:
        """Save a named input of a state machine; return its ``input_name``.

        ``machine``: its name or ARN.
        """
        body = json.dumps({"machine": machine, "name": name, "input": json.dumps(data)})
        saved = self._own_api("POST", "/api/inputs", body)["name"]
        return f"{machine.rpartition(':')[2]}/{saved}"

    def named_input(self, input_name: str) -> str:
        """Return the JSON text of ``MACHINE/NAME``; raise ValueError if it does not exist."""
        machine, _, name = input_name.partition("/")
        parts = {"machine": machine, "name": name}
        query = urllib.parse.urlencode(parts, quote_via=urllib.parse.quote)
        answer = self._own_api("GET", f"/api/inputs?{query}") if machine and name else {}
        if "input" not in answer:
            reason = answer.get("message", "wanted MACHINE/NAME")
            raise ValueError(f"input_name: got {input_name!r}: {reason}")
        return str(answer["input"])

    def _own_api(self, method: str, path: str, body: str = "") -> dict[str, Any]:
        """Make a signed call of the server's own API; return its answer or error."""
        from botocore.auth import SigV4Auth
        from botocore.awsrequest import AWSRequest
        from botocore.credentials import Credentials

        profile = self._profile()
        key = Credentials(profile["aws_access_key_id"], profile["aws_secret_access_key"])
        signed = AWSRequest(method, f"{self.url}{path}", data=body)
        SigV4Auth(key, "stateyard", self.region).add_auth(signed)
        headers = {name: str(value) for name, value in signed.headers.items()}
        request = urllib.request.Request(  # noqa: S310 - the address of this server
            signed.url, body.encode() or None, headers, method=method
        )
        try:
            with _direct.open(request, timeout=60) as answer:
                content: dict[str, Any] = json.load(answer)
        except urllib.error.HTTPError as error:
            content = json.load(error)
        if method == "POST" and "message" in content:
            raise ValueError(content["message"])
        return content

    # -- ends of executions ------------------------------------------------------------------------

    def wait(self, arn: str, timeout_s: float = 60) -> MachineRun:
        """Wait for the end of an execution, whoever started it; raise TimeoutError.

        ``invocations`` of the result are all calls so far.
        """
        return self._ended(arn, timeout_s, 0)

    def _ended_at_once(self, arn: str, since: int) -> MachineRun | None:
        """Return a new execution whose short history already has its end, in one call; else None.

        Call it only for an execution that was never redriven: its status is that of its last event.
        """
        page = self._api.get_execution_history(executionArn=arn)
        last = page["events"][-1]
        status = _ENDS.get(last["type"])
        if status is None or "nextToken" in page:
            return None
        details = last.get(f"e{last['type'][1:]}EventDetails", {})
        execution = {**details, "executionArn": arn, "status": status}
        return self._run(execution, tuple(page["events"]), since)

    def _ended(self, arn: str, timeout_s: float, since: int) -> MachineRun:
        deadline, pause = time.monotonic() + timeout_s, 0.02
        while True:
            execution = self._api.describe_execution(executionArn=arn)
            ended = execution["status"] not in ("RUNNING", "PENDING_REDRIVE")
            if ended or time.monotonic() > deadline:
                break
            time.sleep(pause)
            pause = min(pause * 1.5, 0.5)
        pages = self._api.get_paginator("get_execution_history").paginate(executionArn=arn)
        run = self._run(
            execution, tuple(event for page in pages for event in page["events"]), since
        )
        if not ended:
            raise TimeoutError(f"not ended after {timeout_s:g} seconds\n{run.describe()}")
        return run

    def _run(
        self, execution: dict[str, Any], history: tuple[dict[str, Any], ...], since: int
    ) -> MachineRun:
        output = execution.get("output")
        return MachineRun(
            arn=execution["executionArn"],
            status=execution["status"],
            output=None if output is None else json.loads(output),
            error=execution.get("error"),
            cause=execution.get("cause"),
            history=history,
            invocations=tuple(self._functions.invocations[since:]),
        )


def _environment() -> dict[str, str]:
    """Return the server's environment, without the tests' Stateyard settings."""
    variables = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("STATEYARD_", "DJANGO_")) and name not in local_options.VARIABLES
    }
    return variables | {"DJANGO_SETTINGS_MODULE": "console.config.settings"}
