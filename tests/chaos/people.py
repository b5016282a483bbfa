"""People pause executions and let lines of control continue from breakpoints, amid kills.

Each execution of the shape ``debugged`` waits at a gate until its breakpoint is set. A person then
lets it continue in one of several ways, each of which has an output of its own. A third of them
are paused while they stand at the breakpoint: what the person says waits until the resume.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import signal
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.exceptions import BotoCoreError, ClientError

from tests.chaos.database import wait_until
from tests.chaos.load import Load, Report
from tests.chaos.shapes import DEBUGGED, GATE, WAYS
from tests.chaos.stage import begin, close

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.chaos.stage import Size
    from tests.chaos.team_server import TeamServer
    from tests.postgres import Postgres

_GIVE_UP_S = 240
_PAUSED_S = 1.0  # so long a killed server has for a step that it must not take
_AT_ONCE = 6
_PARTS = {
    "run-to": ("run-to", {"run_to": "Right"}),
    "edit": ("continue", {"input": '{"n":%d,"edited":true}'}),
    "answer": ("answer", {"output": '{"answered":%d}'}),
    "skip": ("skip", {"output": '{"skipped":%d}'}),
    "fail": ("fail", {"error": "ByHand", "cause": "chaos"}),
}
"""Way -> button of the page, and what is typed; ``%d`` stands for the number of the execution."""

_HALTS = {"step": 2, "into": 3, "run-to": 2}
"""Way -> how often lines stand, the second time without a breakpoint; 1 for the others."""


def pauses(folder: Path, server: Postgres | None, size: Size) -> Report:
    """Kill -9 while executions of all shapes are paused: none takes a step, none stays behind."""
    report = Report("pauses", size.seed)
    yard = begin(folder, server, size)
    load = Load(yard)
    load.work()
    with contextlib.closing(Person(yard)) as person:
        dice = random.Random(size.seed)
        starter = load.begin(size.n, size.per_s)
        paused = 0
        for turn in range(size.faults):
            held = _pause_some(person, load, dice, still=bool(turn % 2))
            before = {arn: person.events(arn) for arn in held}
            _kill(yard, dice)
            time.sleep(_PAUSED_S)
            for arn, events in before.items():
                if not person.is_paused(arn):
                    report.violations.append(f"{arn} has lost its pause")
                elif person.events(arn) != events:
                    report.violations.append(f"{arn} has taken a step while it was paused")
            for arn in held:
                person.call("resume", arn)
            paused += len(held)
        starter.join()
    report.facts |= {"kills": size.faults, "paused": paused}
    return close(yard, load, report)


def _pause_some(person: Person, load: Load, dice: random.Random, *, still: bool) -> list[str]:
    """Pause some of the executions that run; they may end before."""
    deadline = time.monotonic() + 20
    timers = "still" if still else "run"
    held: list[str] = []
    while len(held) < _AT_ONCE and time.monotonic() < deadline:
        running = sorted((load._running(load.shapes) or set()) - set(held))
        chosen = dice.sample(running, min(_AT_ONCE - len(held), len(running)))
        held += [arn for arn in chosen if person.call("pause", arn, timers=timers)]
        if held and not running:
            break
        time.sleep(0.2)
    return held


def breakpoints(folder: Path, server: Postgres | None, size: Size) -> Report:
    """Kill -9 while lines stand at breakpoints, and while people let them continue or step."""
    report = Report("breakpoints", size.seed)
    yard = begin(folder, server, size)
    role = "arn:aws:iam::123456789012:role/chaos"
    with contextlib.closing(yard.client()) as client:
        client.create_activity(name=GATE.rpartition(":")[2])
        client.create_state_machine(name=DEBUGGED.name, definition=DEBUGGED.text, roleArn=role)
    load = Load(yard, (DEBUGGED,))
    load.wanted.update(range(size.n))
    with (
        contextlib.closing(Person(yard, kills_left=size.faults)) as person,
        _kills(person, size),
        _gatekeepers(person),
        ThreadPoolExecutor(_AT_ONCE) as pool,
    ):
        list(pool.map(lambda number: _live(person, load, number), range(size.n)))
    report.violations += person.problems
    report.facts |= {"kills": size.faults - person.kills_left, "killed_at": person.killed_at}
    report.facts |= {"stood": person.stood, "paused": person.paused}
    _judge_calls(yard, size.n, report)
    _judge_edits(yard, size.n, report)
    return close(yard, load, report)


def _live(person: Person, load: Load, number: int) -> None:
    """Start an execution, let it stand at a breakpoint, and let it continue in its way."""
    load.start_one(DEBUGGED, number)
    way = WAYS[number % len(WAYS)]
    arn = next(arn for arn, (_, acked) in list(load.acked.items()) if acked == number)
    person.post(number, act="add", state="Both" if way == "into" else "Call")
    done: set[str] = set()
    deadline = time.monotonic() + _GIVE_UP_S
    while time.monotonic() < deadline:
        halts, has_ended = person.look(number)
        if has_ended:
            expected = _HALTS.get(way, 1)
            if len(done) != expected:
                person.problems.append(f"{arn} stood {len(done)} times, wanted {expected}")
            return
        for halt in halts:
            if halt not in done:
                _let_continue(person, arn, number, halt, "continue" if done else way)
                done.add(halt)
        if not done:
            person.open_gate(number)
        time.sleep(0.1)
    person.problems.append(f"{arn} does not end after {sorted(done)}")


def _let_continue(person: Person, arn: str, number: int, halt: str, way: str) -> None:
    """Let a line continue; each third execution is paused meanwhile, each third is killed at it."""
    with person.lock:
        person.stood += 1
    act, typed = _PARTS.get(way, (way, {}))
    fields = {name: text.replace("%d", str(number)) for name, text in typed.items()}
    if number % 3 or not person.call("pause", arn, timers="run"):
        if number % 3 == 1:
            person.see_kill("standing")
        person.post(number, act=act, halt=halt, **fields)
        return
    before = person.events(arn)
    person.post(number, act=act, halt=halt, **fields)
    person.see_kill("paused")
    time.sleep(_PAUSED_S)
    if not person.is_paused(arn) or person.events(arn) != before:
        person.problems.append(f"{arn} has taken a step while it was paused at a breakpoint")
    person.call("resume", arn)
    with person.lock:
        person.paused += 1


# -- people ----------------------------------------------------------------------------------------


@dataclass
class Person:
    """Somebody with a browser and a key, who asks again whenever there is no answer."""

    yard: TeamServer
    problems: list[str] = field(default_factory=list)
    stood: int = 0
    paused: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)
    tokens: dict[int, str] = field(default_factory=dict)
    kills_left: int = 0
    killed_at: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.client = self.yard.client()
        self.keys = Credentials(*self.yard._key)
        self.web = httpx.Client(base_url=f"http://127.0.0.1:{self.yard.port}", timeout=60)
        link = self.yard.manage("login_url", "--user", "chaos").split()[-1]
        path = "/login/" + link.rstrip("/").rpartition("/")[2] + "/"
        self._request("GET", path)  # which sets the cookie of forms
        self._request("POST", path)

    def close(self) -> None:
        """Close the connections of browser and key."""
        self.web.close()
        self.client.close()

    def _request(self, method: str, path: str, **more: Any) -> httpx.Response:
        """Send a request until it is answered; the server may be killed meanwhile."""
        deadline = time.monotonic() + _GIVE_UP_S
        while True:
            try:
                form = {"X-CSRFToken": self.web.cookies.get("stateyard_csrf") or ""}
                answer = self.web.request(method, path, headers=form, **more)
                if answer.status_code < HTTPStatus.INTERNAL_SERVER_ERROR:
                    return answer
            except httpx.HTTPError:
                pass
            if time.monotonic() > deadline:
                raise TimeoutError(f"{method} {path} is not answered")
            time.sleep(0.1)

    def see_kill(self, what: str) -> None:
        """Wait until the server has been killed once more, unless that was the last time."""
        before = self.kills_left
        if before and wait_until(lambda: self.kills_left < before, 120):
            with self.lock:
                self.killed_at[what] += 1

    def look(self, number: int) -> tuple[list[str], bool]:
        """Return the numbers of the halts on an execution's page, and whether it has ended."""
        answer = self._request("GET", _page(number))
        answer.raise_for_status()
        halts = re.findall(r'name="halt" value="(\d+)"', answer.text)
        return list(dict.fromkeys(halts)), "The execution has ended." in answer.text

    def post(self, number: int, **fields: str) -> None:
        """Press a button; a line that has continued already has had the same press before."""
        answer = self._request("POST", _page(number), data=fields)
        is_refused = answer.status_code == HTTPStatus.UNPROCESSABLE_ENTITY
        if is_refused and "in the meantime" not in answer.text and "has ended" not in answer.text:
            refusals = re.findall(r'role="alert">([^<]+)<', answer.text)
            self.problems.append(f"{number}: {fields} is refused: {refusals}")
        elif not is_refused and answer.status_code != HTTPStatus.FOUND:
            self.problems.append(f"{number}: {fields} is answered {answer.status_code}")

    def call(self, act: str, arn: str, **more: str) -> bool:
        """Pause or resume; tell whether it was done, now or by a call without an answer."""
        path = f"/api/executions/{act}"
        answer = self._signed("POST", path, json.dumps({"executionArn": arn, **more}))
        return answer.status_code == HTTPStatus.OK or (act == "pause" and self.is_paused(arn))

    def is_paused(self, arn: str) -> bool:
        """Tell whether an execution is paused."""
        answer = self._signed("GET", f"/api/executions/paused?execution={quote(arn, safe='')}", "")
        answer.raise_for_status()
        return answer.json()["pause"] is not None

    def _signed(self, method: str, path: str, body: str) -> httpx.Response:
        headers = {"Content-Type": "application/json"}
        address = f"http://127.0.0.1:{self.yard.port}{path}"
        deadline = time.monotonic() + _GIVE_UP_S
        while True:
            request = AWSRequest(method, address, headers, body.encode())
            SigV4Auth(self.keys, "stateyard", "us-east-1").add_auth(request)
            signed = dict(request.headers.items())
            try:
                answer = httpx.request(method, address, headers=signed, content=body, timeout=60)
                if answer.status_code < HTTPStatus.INTERNAL_SERVER_ERROR:
                    return answer
            except httpx.HTTPError:
                pass
            if time.monotonic() > deadline:
                raise TimeoutError(f"{method} {path} is not answered")
            time.sleep(0.1)

    def events(self, arn: str) -> list[int]:
        """Return the numbers of the events of an execution."""
        deadline = time.monotonic() + _GIVE_UP_S
        while time.monotonic() < deadline:
            with contextlib.suppress(BotoCoreError, ClientError, KeyError):
                pages = self.client.get_paginator("get_execution_history")
                return [
                    event["id"]
                    for page in pages.paginate(executionArn=arn)
                    for event in page["events"]
                ]
            time.sleep(0.1)
        raise TimeoutError(f"{arn} has no history")

    def keep_gate(self, ended: threading.Event) -> None:
        """Take the tokens of executions that wait at the gate."""
        client = self.yard.client()
        while not ended.is_set():
            try:
                task = client.get_activity_task(activityArn=GATE, workerName="gate")
                if task.get("taskToken"):
                    self.tokens[json.loads(task["input"])["n"]] = task["taskToken"]
            except (BotoCoreError, ClientError):
                time.sleep(0.1)

    def open_gate(self, number: int) -> None:
        """Let an execution through if its token is here; a lost answer is sent again later."""
        token = self.tokens.get(number)
        if token:
            with contextlib.suppress(BotoCoreError, ClientError):
                self.client.send_task_success(taskToken=token, output="{}")


def _page(number: int) -> str:
    return f"/machines/{DEBUGGED.name}/executions/{DEBUGGED.name}-{number}/breakpoints/"


# -- beside them -----------------------------------------------------------------------------------


@contextlib.contextmanager
def _kills(person: Person, size: Size) -> Iterator[None]:
    """Kill -9 until all is done, at most as often as the size says."""
    dice, over = random.Random(size.seed), threading.Event()

    def strike() -> None:
        while person.kills_left and not over.wait(dice.uniform(2.0, 5.0)):
            _kill(person.yard, dice)
            person.kills_left -= 1

    killer = threading.Thread(target=strike)
    killer.start()
    try:
        yield
    finally:
        over.set()
        killer.join()


def _kill(yard: TeamServer, dice: random.Random) -> None:
    """Kill what serves the API, and of workers one."""
    if yard.workers is not None and (pids := yard.worker_pids()):
        with contextlib.suppress(ProcessLookupError):
            os.kill(dice.choice(pids), signal.SIGKILL)
    yard.kill_web()
    yard.start_web()


@contextlib.contextmanager
def _gatekeepers(person: Person) -> Iterator[None]:
    over = threading.Event()
    for _ in range(3):
        threading.Thread(target=person.keep_gate, args=(over,), daemon=True).start()
    try:
        yield
    finally:
        over.set()


# -- what has come of it ---------------------------------------------------------------------------


def _judge_calls(yard: TeamServer, n: int, report: Report) -> None:
    """A task that was answered, skipped or failed by hand was never called, another once."""
    calls = [json.loads(line) for line in yard.calls.read_text().splitlines()]
    keys: dict[int, set[str]] = {}
    for call in calls:
        if call["function"] == "charge":
            keys.setdefault(call["n"], set()).add(call["key"])
    for number in range(n):
        expected = 0 if WAYS[number % len(WAYS)] in ("answer", "skip", "fail") else 1
        got = len(keys.get(number, ()))
        if got != expected:
            report.violations.append(f"{DEBUGGED.name}-{number}: {got} charges, wanted {expected}")


_EDITS = (
    "import json; from console.models import DebugEdit;"
    "print(json.dumps([[e.execution.name, e.what] for e in"
    " DebugEdit.objects.select_related('execution')]))"
)


def _judge_edits(yard: TeamServer, n: int, report: Report) -> None:
    """What a person changed is noted once, however often it was said."""
    printed = yard.manage("shell", "--no-imports", "-c", _EDITS).strip().splitlines()[-1]
    got = Counter((name, what) for name, what in json.loads(printed))
    names = {"edit": "input", "answer": "answer", "skip": "skip", "fail": "fail"}
    expected = Counter(
        (f"{DEBUGGED.name}-{number}", names[WAYS[number % len(WAYS)]])
        for number in range(n)
        if WAYS[number % len(WAYS)] in names
    )
    report.facts["edits"] = sum(got.values())
    for entry in sorted(set(got) | set(expected)):
        if got[entry] != expected[entry]:
            report.violations.append(f"{entry}: {got[entry]} notes, wanted {expected[entry]}")


__all__ = ["breakpoints", "pauses"]
