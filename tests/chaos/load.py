"""Clients that start executions, work the activity and judge how every execution ended."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from tests.chaos.shapes import ACTIVITY, CHILD, NESTED, SHAPES
from tests.chaos.team_server import TeamServer, execution_arn, machine_arn

if TYPE_CHECKING:
    from tests.chaos.shapes import Shape

_GIVE_UP_S = 240


@dataclass
class Report:
    """What a scenario found; ``violations`` in words."""

    check: str
    seed: int
    n: int = 0
    violations: list[str] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)

    def line(self) -> str:
        """Return it as one JSON line."""
        fields = {"check": self.check, "seed": self.seed, "n": self.n}
        fields |= {"violations": len(self.violations), **self.facts}
        if self.violations:
            fields["first"] = self.violations[:5]
        return json.dumps(fields)


class Load:
    """Executions of all shapes, started by several clients that repeat what was not answered."""

    def __init__(self, yard: TeamServer, shapes: tuple[Shape, ...] = SHAPES) -> None:
        self.yard = yard
        self.shapes = shapes
        self.acked: dict[str, tuple[Shape, int]] = {}
        self.wanted: set[int] = set()
        self.retried = 0
        self.lateness: list[tuple[float, str]] = []
        self.moments: list[float] = []  # starts and ends by the API, in epoch seconds
        self.sent: dict[str, str] = {}  # token -> output, of every answer to a task
        self._client = yard.client(64)
        self._ended = threading.Event()
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()

    # -- starting ----------------------------------------------------------------------------------

    def begin(self, n: int | range, per_s: float = 0.0, threads: int = 8) -> threading.Thread:
        """Do the same beside what follows; ``judge`` misses what was not started."""
        starter = threading.Thread(target=self.start, args=(n, per_s, threads))
        starter.start()
        return starter

    def start(self, n: int | range, per_s: float = 0.0, threads: int = 8) -> None:
        """Start ``n`` executions, ``per_s`` a second if that is not 0; returns when all have."""
        begun = time.monotonic()
        numbers = range(n) if isinstance(n, int) else n
        with self._lock:
            self.wanted.update(numbers)

        def one(number: int) -> None:
            if per_s:
                due = begun + (number - numbers.start) / per_s
                time.sleep(max(0.0, due - time.monotonic()))
            self.start_one(self.shapes[number % len(self.shapes)], number)

        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(one, numbers))

    def start_one(self, shape: Shape, number: int) -> None:
        """Start an execution; with the same name and input again until somebody answers."""
        arguments = {
            "stateMachineArn": machine_arn(shape.name),
            "name": f"{shape.name}-{number}",
            "input": json.dumps({"n": number}),
        }
        deadline = time.monotonic() + _GIVE_UP_S
        while True:
            try:
                answer = self._client.start_execution(**arguments)
                if "executionArn" in answer:
                    arn = answer["executionArn"]
                    break
                # its body was cut off when the process was killed: it is no answer
            except self._client.exceptions.ExecutionAlreadyExists:
                # taken before, unanswered, and over: AWS knows the same start only while it runs
                arn = execution_arn(shape.name, arguments["name"])
                break
            except (BotoCoreError, ClientError):
                if time.monotonic() > deadline:
                    raise
            with self._lock:
                self.retried += 1
            time.sleep(0.1)
        with self._lock:
            self.acked[arn] = (shape, number)

    # -- the activity ------------------------------------------------------------------------------

    def work(self, threads: int = 4) -> None:
        """Work the activity until ``end``."""
        for _ in range(threads):
            thread = threading.Thread(target=self._work, daemon=True)
            thread.start()
            self._threads.append(thread)

    def _work(self) -> None:
        client = self.yard.client()
        while not self._ended.is_set():
            try:
                task = client.get_activity_task(activityArn=ACTIVITY, workerName="chaos")
                if not task.get("taskToken"):
                    continue
                output = json.dumps({"done": json.loads(task["input"])["n"]})
                self.sent[task["taskToken"]] = output
                self._send(client, task["taskToken"], output)
            except (BotoCoreError, ClientError):
                time.sleep(0.1)

    def _send(self, client: Any, token: str, output: str) -> None:
        """Send an outcome until somebody answers; an unanswered one may have been taken."""
        deadline = time.monotonic() + _GIVE_UP_S
        while time.monotonic() < deadline and not self._ended.is_set():
            try:
                client.send_task_success(taskToken=token, output=output)
            except (client.exceptions.TaskTimedOut, client.exceptions.TaskDoesNotExist):
                return  # ended, or of a future that was restored away
            except (BotoCoreError, ClientError):
                time.sleep(0.1)
            else:
                return

    def send_again(self) -> None:
        """Repeat every answer: the database may have forgotten those since its backup."""
        client = self.yard.client()
        for token, output in list(self.sent.items()):
            self._send(client, token, output)

    def end(self) -> None:
        """Work no longer."""
        self._ended.set()

    # -- the end -----------------------------------------------------------------------------------

    def wait(self, seconds: float) -> list[str]:
        """Wait until every execution has ended; return those that have not."""
        deadline = time.monotonic() + seconds
        pending = set(self.acked)
        while pending and time.monotonic() < deadline:
            running = self._running(self.shapes)
            if running is not None:
                pending &= running
            if pending:
                time.sleep(0.5)
        return sorted(pending)

    def _running(self, shapes: tuple[Shape, ...]) -> set[str] | None:
        arns: set[str] = set()
        try:
            for shape in shapes:
                pages = self._client.get_paginator("list_executions").paginate(
                    stateMachineArn=machine_arn(shape.name), statusFilter="RUNNING"
                )
                arns |= {
                    execution["executionArn"] for page in pages for execution in page["executions"]
                }
        except (BotoCoreError, ClientError):
            return None
        return arns

    def judge(self, report: Report, limit_s: float = _GIVE_UP_S) -> None:
        """Wait for all, compare every output, count the names; add what is wrong."""
        report.n = len(self.acked)
        unanswered = self.wanted - {number for _, number in self.acked.values()}
        if unanswered:
            report.violations.append(f"{len(unanswered)} starts were never answered")
        report.violations += [f"{arn} does not end" for arn in self.wait(limit_s)]
        with ThreadPoolExecutor(8) as pool:
            stalls = list(pool.map(lambda item: self._judge(report, *item), self.acked.items()))
        late = sorted(stall for stall in stalls if stall is not None)
        self.lateness = late
        if late:
            report.facts["p99_s"] = round(late[int(len(late) * 0.99) - 1][0], 2)
            report.facts["max_s"] = round(late[-1][0], 2)
            report.facts["slowest"] = late[-1][1]
        report.facts["retried_calls"] = self.retried
        self._count_names(report)
        self._judge_children(report)

    def standstill_s(self) -> float:
        """Return the longest time in which executions ran and none started or ended."""
        ordered = sorted(self.moments)
        return max((after - before for before, after in pairwise(ordered)), default=0.0)

    def _judge(
        self, report: Report, arn: str, about: tuple[Shape, int]
    ) -> tuple[float, str] | None:
        shape, number = about
        execution = self._client.describe_execution(executionArn=arn)
        expected = shape.output(number)
        got = (
            json.loads(execution["output"])
            if execution["status"] == "SUCCEEDED"
            else execution["status"]
        )
        if got != expected:
            report.violations.append(
                f"{arn}: got {got}, wanted {expected} {execution.get('cause', '')}"
            )
        if "stopDate" not in execution:
            return None
        self.moments += [execution["startDate"].timestamp(), execution["stopDate"].timestamp()]
        took = (execution["stopDate"] - execution["startDate"]).total_seconds()
        return float(took - shape.nominal_s), execution["name"]

    def _count_names(self, report: Report) -> None:
        """One row a name, and none that nobody asked for."""
        for shape in self.shapes:
            names = self._names(shape)
            report.violations += [f"{name} twice" for name, n in names.items() if n > 1]
            numbers = {
                number for acked_shape, number in self.acked.values() if acked_shape is shape
            }
            missing = {f"{shape.name}-{number}" for number in numbers} - set(names)
            report.violations += [f"{name} is lost" for name in missing]

    def _names(self, shape: Shape) -> Counter[str]:
        pages = self._client.get_paginator("list_executions").paginate(
            stateMachineArn=machine_arn(shape.name)
        )
        return Counter(execution["name"] for page in pages for execution in page["executions"])

    def _judge_children(self, report: Report) -> None:
        """Every nested execution is there, once, and came to its end as it should."""
        parents = [item for item in self.acked.values() if item[0] in NESTED]
        children = {execution_arn(CHILD.name, f"{shape.name}-{n}"): n for shape, n in parents}
        running = set(children)
        deadline = time.monotonic() + _GIVE_UP_S
        while running and time.monotonic() < deadline:
            running &= self._running((CHILD,)) or set()
            time.sleep(0.2 if running else 0)
        report.facts["children"] = len(children)
        for arn, number in children.items():
            self._judge(report, arn, (CHILD, number))
        names = self._names(CHILD)
        expected = {arn.rpartition(":")[2] for arn in children}
        report.violations += [f"the child {name} is lost" for name in expected - set(names)]
        report.violations += [f"nobody asked for {name}" for name in set(names) - expected]


def count_calls(yard: TeamServer, report: Report, allowed: int | None) -> None:
    """Count the calls that were made more than once; all of them carry the key of the first."""
    keys = Counter(json.loads(line)["key"] for line in yard.calls.read_text().splitlines())
    again = sum(count - 1 for count in keys.values())
    report.facts |= {"calls": sum(keys.values()), "calls_repeated": again}
    if allowed is not None and again > allowed:
        report.violations.append(f"{again} calls repeated, at most {allowed} were under way")


def invariants(yard: TeamServer, report: Report) -> None:
    """Let the server's own checker look at the rows."""
    printed = yard.manage("check_invariants", "--json").strip().splitlines()
    result = json.loads(printed[-1])
    report.facts["invariants"] = result["violations"]
    if result["violations"]:
        report.violations += printed[:-1] or [printed[-1]]


__all__ = ["Load", "Report", "count_calls", "execution_arn", "invariants"]
