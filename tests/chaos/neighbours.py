"""Two projects on one server: a quiet one, and one whose receivers accept and say nothing.

The quiet one has executions with an HTTP Task, a rule that tells a web address of their ends, and
schedules that start a state machine. Each of these is measured by how late it is.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import boto3
from botocore.config import Config

from tests.silent_host import SilentHost

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.chaos.team_server import TeamServer

QUIET, LOUD = "default", "loud"
ACCOUNTS = {QUIET: "123456789012", LOUD: "210987654321"}
SILENT_TARGETS = 5
_ROLE = "arn:aws:iam::{}:role/neighbour"
_PASS = {"StartAt": "P", "States": {"P": {"Type": "Pass", "End": True}}}
_CONNECTION = "arn:aws:events:us-east-1:123456789012:connection/shop/1"
_GIVE_UP_S = 180.0


class Listener:
    """A web address that answers at once, and remembers when it was told of which execution."""

    def __init__(self) -> None:
        """Answer from now on."""
        self.told: dict[str, list[tuple[float, str]]] = {}
        listener = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                text = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                event = json.loads(text or b"{}")
                if "detail" in event:
                    about = event["detail"]["executionArn"]
                    listener.told.setdefault(about, []).append((time.time(), event["id"]))
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@dataclass
class Delays:
    """How late things were, in seconds."""

    tasks: list[float] = field(default_factory=list)
    notices: list[float] = field(default_factory=list)
    schedules: list[float] = field(default_factory=list)


class Neighbours:
    """Both projects of a server; make it before the server starts, and call ``prepare`` then."""

    def __init__(self, yard: TeamServer) -> None:
        """Name the hosts to the server."""
        self.yard = yard
        self.listener, self.silent = Listener(), SilentHost()
        targets = {
            "endpoints": [self.listener.url, self.silent.url],
            "connections": {"shop": {"type": "API_KEY", "name": "X-Key", "value": "k"}},
        }
        yard.env["STATEYARD_TARGETS"] = json.dumps({"http": targets})
        self._keys: dict[str, tuple[str, str]] = {}
        self._clients: dict[tuple[str, str], Any] = {}
        self._inputs: dict[str, Any] = {}  # of executions, which never change

    def close(self) -> None:
        """End the hosts."""
        self.silent.close()
        self.listener.server.shutdown()
        self.listener.server.server_close()

    def prepare(self) -> None:
        """Make the second project, and the machines and rules of both."""
        make = f"Project.objects.get_or_create(name='{LOUD}', account_id='{ACCOUNTS[LOUD]}')"
        self.yard.manage("shell", "-c", f"from console.models import Project; {make}")
        for project, host in ((QUIET, self.listener.url), (LOUD, self.silent.url)):
            for name, definition in (("call", _calling(host)), ("plain", _PASS)):
                self.client(project).create_state_machine(
                    name=name, definition=json.dumps(definition), roleArn=_role(project)
                )
        ended = {"source": ["aws.states"], "detail": {"status": ["SUCCEEDED"]}}
        self._rule(QUIET, "ends", ended, [f"{self.listener.url}/ends"])
        self._rule(LOUD, "ends", ended, [f"{self.silent.url}/ends"])
        silent = [f"{self.silent.url}/{number}" for number in range(SILENT_TARGETS)]
        self._rule(LOUD, "put", {"source": ["loud"]}, silent)

    def _rule(self, project: str, name: str, pattern: dict[str, Any], hosts: Sequence[str]) -> None:
        events = self.client(project, "events")
        events.put_rule(Name=name, EventPattern=json.dumps(pattern))
        targets = [{"Id": str(number), "Arn": url} for number, url in enumerate(hosts)]
        events.put_targets(Rule=name, Targets=targets)

    def client(self, project: str, service: str = "stepfunctions") -> Any:
        """Return a client of a service for a project."""
        if (project, service) not in self._clients:
            self._clients[project, service] = self._new_client(project, service)
        return self._clients[project, service]

    def _new_client(self, project: str, service: str) -> Any:
        if project not in self._keys:
            printed = self.yard.manage(
                *("member", f"neighbour-{project}", "--role", "owner", "--project", project),
                "--key",
            )
            words = dict(line.split(" = ") for line in printed.splitlines() if " = " in line)
            self._keys[project] = (words["aws_access_key_id"], words["aws_secret_access_key"])
        key, secret = self._keys[project]
        return boto3.client(
            service,
            endpoint_url=f"http://127.0.0.1:{self.yard.port}",
            region_name="us-east-1",
            aws_access_key_id=key,
            aws_secret_access_key=secret,
            config=Config(
                retries={"max_attempts": 25, "mode": "standard"},  # a restart takes its time
                max_pool_connections=64,
                inject_host_prefix=False,
            ),
        )

    # -- the loud one ------------------------------------------------------------------------------

    def make_noise(self, executions: int = 200) -> None:
        """Start so many executions with a silent webhook and as many with a silent HTTP Task."""
        states, events = self.client(LOUD), self.client(LOUD, "events")

        def begin(number: int) -> None:
            for name in ("plain", "call"):
                arn = machine_arn(LOUD, name)
                states.start_execution(stateMachineArn=arn, name=f"{name}-{number}", input="{}")

        with ThreadPoolExecutor(16) as pool:
            list(pool.map(begin, range(executions)))
        entry = {"Source": "loud", "DetailType": "Noise", "Detail": "{}"}
        events.put_events(Entries=[entry] * 10)

    # -- the quiet one -----------------------------------------------------------------------------

    def measure(self, label: str, count: int, pause_s: float = 0.5) -> Delays:
        """Start executions and schedules for a while, and return how late each was."""
        states = self.client(QUIET)
        due_s = self._schedule(label, count, pause_s)
        machine, calls = machine_arn(QUIET, "call"), []
        for number in range(count):
            name = f"{label}-{number}"
            # a start whose answer was lost was made again by boto3, and may have ended by then
            with contextlib.suppress(states.exceptions.ExecutionAlreadyExists):
                states.start_execution(stateMachineArn=machine, name=name)
            calls.append(f"{machine.replace(':stateMachine:', ':execution:')}:{name}")
            time.sleep(pause_s)
        delays = Delays()
        for arn in calls:
            row = self._ended(arn)
            stop_s = row["stopDate"].timestamp()
            delays.tasks.append(stop_s - row["startDate"].timestamp())
            delays.notices.append(self._told_s(arn) - stop_s)
        delays.schedules = [self._started_s(label, moment) - moment for moment in due_s]
        return delays

    def _schedule(self, label: str, count: int, pause_s: float) -> list[int]:
        """Make schedules for moments to come, and return these."""
        scheduler = self.client(QUIET, "scheduler")
        first = int(time.time()) + 5
        moments = sorted({first + int(number * pause_s) for number in range(count)})
        for moment in moments:
            when = datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%S")
            with contextlib.suppress(scheduler.exceptions.ConflictException):  # as above
                scheduler.create_schedule(
                    Name=f"{label}-{moment}",
                    ScheduleExpression=f"at({when})",
                    FlexibleTimeWindow={"Mode": "OFF"},
                    Target={
                        "Arn": machine_arn(QUIET, "plain"),
                        "RoleArn": _role(QUIET),
                        "Input": json.dumps({"label": label, "moment": moment}),
                    },
                )
        return moments

    def _ended(self, arn: str) -> Any:
        states = self.client(QUIET)
        deadline = time.monotonic() + _GIVE_UP_S
        while (row := states.describe_execution(executionArn=arn))["status"] == "RUNNING":
            if time.monotonic() > deadline:
                raise TimeoutError(f"{arn} runs for more than {_GIVE_UP_S} s")
            time.sleep(0.1)
        if row["status"] != "SUCCEEDED":
            raise RuntimeError(f"{arn}: {row.get('error')} {row.get('cause')}")
        return row

    def _told_s(self, arn: str) -> float:
        deadline = time.monotonic() + _GIVE_UP_S
        while arn not in self.listener.told:
            if time.monotonic() > deadline:
                raise TimeoutError(f"nobody told of {arn} within {_GIVE_UP_S} s")
            time.sleep(0.05)
        return self.listener.told[arn][0][0]

    def _started_s(self, label: str, moment: int) -> float:
        deadline = time.monotonic() + _GIVE_UP_S
        while not (starts := self.scheduled(label).get(moment)):
            if time.monotonic() > deadline:
                raise TimeoutError(f"the schedule of {moment} did not start within {_GIVE_UP_S} s")
            time.sleep(0.2)
        return starts[0]

    def scheduled(self, label: str) -> dict[int, list[float]]:
        """Return moment -> when the executions of its schedule began."""
        states = self.client(QUIET)
        pages = states.get_paginator("list_executions").paginate(
            stateMachineArn=machine_arn(QUIET, "plain")
        )
        starts: dict[int, list[float]] = {}
        for page in pages:
            for row in page["executions"]:
                arn = row["executionArn"]
                data = self._inputs.get(arn) or json.loads(
                    states.describe_execution(executionArn=arn)["input"]
                )
                self._inputs[arn] = data
                if data.get("label") == label:
                    starts.setdefault(data["moment"], []).append(row["startDate"].timestamp())
        return starts


def machine_arn(project: str, name: str) -> str:
    """Return the ARN of a machine of a project."""
    return f"arn:aws:states:us-east-1:{ACCOUNTS[project]}:stateMachine:{name}"


def _role(project: str) -> str:
    return _ROLE.format(ACCOUNTS[project])


def _calling(host: str) -> dict[str, Any]:
    parameters = {
        "ApiEndpoint": f"{host}/call",
        "Method": "POST",
        "Authentication": {"ConnectionArn": _CONNECTION},
    }
    task = {"Type": "Task", "Resource": "arn:aws:states:::http:invoke", "Parameters": parameters}
    return {"StartAt": "T", "States": {"T": {**task, "End": True}}}
