"""People pause executions, let lines continue from breakpoints, inject faults, amid kills.

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
from tests.chaos.shapes import (
    DEBUGGED,
    FAULTS,
    FAULTY,
    GATE,
    PLACED,
    PLACED_FAULTS,
    STARTS_PLACED,
    WAYS,
)
from tests.chaos.stage import begin, close
from tests.chaos.team_server import execution_arn, machine_arn

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from tests.chaos.stage import Size
    from tests.chaos.team_server import TeamServer
    from tests.postgres import Postgres

_GIVE_UP_S = 240
_PAUSED_S = 1.0  # so long a killed server has for a step that it must not take
_AT_ONCE = 6
_STARTS_A_ROUND = 60  # of which two thirds have a place, of 100 at most
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


def faults(folder: Path, server: Postgres | None, size: Size) -> Report:
    """Kill -9 while injected faults strike: each strikes once, and no call is made in its place.

    The answer of its activity is late and comes twice: it takes one effect.
    """
    report = Report("faults", size.seed)
    yard = begin(folder, server, size)
    role = "arn:aws:iam::123456789012:role/chaos"
    with contextlib.closing(yard.client()) as client:
        client.create_state_machine(name=FAULTY.name, definition=FAULTY.text, roleArn=role)
    load = Load(yard, (FAULTY,))
    load.work()
    load.wanted.update(range(size.n))
    with (
        contextlib.closing(Person(yard, kills_left=size.faults)) as person,
        _kills(person, size),
        ThreadPoolExecutor(_AT_ONCE) as pool,
    ):
        list(pool.map(lambda number: _start_faulty(person, load, number), range(size.n)))
        load.wait(_GIVE_UP_S)
    report.violations += person.problems
    report.facts["kills"] = size.faults - person.kills_left
    _judge_charges(yard, FAULTY.name, dict.fromkeys(range(size.n), 1), report)
    _judge_strikes(yard, size.n, report)
    return close(yard, load, report)


def _start_faulty(person: Person, load: Load, number: int) -> None:
    """Start an execution with faults; the same call again starts no second one."""
    name = f"{FAULTY.name}-{number}"
    body = {
        "stateMachineArn": machine_arn(FAULTY.name),
        "name": name,
        "input": json.dumps({"n": number}),
        "faults": json.dumps({"seed": number, "faults": FAULTS}),
    }
    answer = person._signed("POST", "/api/faults", json.dumps(body))
    is_over = "ExecutionAlreadyExists" in answer.text  # a start without an answer has ended
    if answer.status_code != HTTPStatus.CREATED and not is_over:
        person.problems.append(f"{name} is answered {answer.status_code}: {answer.text[:200]}")
    load.acked[execution_arn(FAULTY.name, name)] = (FAULTY, number)


def _judge_strikes(yard: TeamServer, n: int, report: Report) -> None:
    """Each fault struck each execution once, and took effect."""
    notes: dict[str, list[Note]] = {f"{FAULTY.name}-{number}": [] for number in range(n)}
    for note in _edits_of(yard):
        notes.setdefault(note.name, []).append(note)
    report.facts["strikes"] = sum(map(len, notes.values()))
    lost = sum(note.is_lost for of_one in notes.values() for note in of_one)
    report.facts["answers_lost"] = lost
    for name in sorted(notes):
        report.violations += [f"{name}: {problem}" for problem in wrong_strikes(notes[name])]


def wrong_strikes(notes: Sequence[Note]) -> list[str]:
    """Return what is wrong with the strikes of an execution with ``FAULTS``.

    A strike that delayed an answer past the limit of its task took no effect: the task was retried.
    """
    struck = Counter((note.state, note.after) for note in notes)
    problems = [f"{strike} struck {count} times" for strike, count in struck.items() if count > 1]
    expected = Counter((str(fault["state"]), str(fault.get("type", "fail"))) for fault in FAULTS)
    effects = Counter((note.state, note.kind) for note in notes if not note.is_lost)
    return problems + [
        f"{fault} took {effects[fault]} effects, wanted {expected[fault]}"
        for fault in sorted(set(effects) | set(expected))
        if effects[fault] != expected[fault]
    ]


def next_starts(folder: Path, server: Postgres | None, size: Size) -> Report:
    """Kill -9 while starts take places of the next starts: each place is taken by one of them.

    In each round some have a place and some have none. Half of them are started by a worker.
    """
    report = Report("next-starts", size.seed)
    yard = begin(folder, server, size)
    role = "arn:aws:iam::123456789012:role/chaos"
    with contextlib.closing(yard.client()) as client:
        for shape in (PLACED, STARTS_PLACED):
            client.create_state_machine(name=shape.name, definition=shape.text, roleArn=role)
    load = Load(yard, (PLACED, STARTS_PLACED))
    rounds = max(1, size.n // _STARTS_A_ROUND)
    places = 0
    with contextlib.closing(Person(yard, kills_left=size.faults)) as person, _kills(person, size):
        for number in range(rounds):
            first, last = (size.n * number // rounds, size.n * (number + 1) // rounds)
            count = max(1, (last - first) * 2 // 3)
            _set_places(person, count)
            places += count
            load.start(range(first, last), size.per_s)
            wait_until(lambda: load._running((STARTS_PLACED, PLACED)) == set(), _GIVE_UP_S)
    report.violations += person.problems
    report.facts |= {"kills": size.faults - person.kills_left, "places": places, "rounds": rounds}
    _judge_places(yard, size.n, places, report)
    _judge_charges(yard, PLACED.name, dict.fromkeys(range(size.n), 1), report)
    return close(yard, load, report)


def _set_places(person: Person, count: int) -> None:
    """Set faults for the next starts of ``placed``; the same call again sets them once."""
    faults = json.dumps({"faults": PLACED_FAULTS})
    body = {"machine": machine_arn(PLACED.name), "starts": str(count), "faults": faults}
    answer = person._signed("POST", "/api/next-starts", json.dumps(body))
    if answer.status_code != HTTPStatus.CREATED:
        person.problems.append(f"next starts are answered {answer.status_code}: {answer.text}")


_PLACES = (
    "import json; from console.models import Execution, StateMachine;"
    "print(json.dumps([[list(row) for row in Execution.objects"
    f".filter(state_machine__name='{PLACED.name}').values_list('name', 'next_starts', 'status')],"
    " list(StateMachine.objects.filter(next_starts__isnull=False).values_list('name'))]))"
)


def _judge_places(yard: TeamServer, n: int, places: int, report: Report) -> None:
    """Each place has one execution, each execution at most one place, and the faults of it."""
    printed = yard.manage("shell", "--no-imports", "-c", _PLACES).strip().splitlines()[-1]
    executions, unused = json.loads(printed)
    names = Counter(name for name, _, _ in executions)
    expected = {f"{PLACED.name}-{number}" for number in range(n)}
    report.violations += [f"{name} is lost" for name in sorted(expected - set(names))]
    report.violations += [f"{name} twice" for name, count in names.items() if count > 1]
    taken = {name: json.loads(place) for name, place, _ in executions if place}
    numbers = Counter((place["set_ms"], place["number"]) for place in taken.values())
    report.facts["taken"] = len(taken)
    if len(taken) != places or len(numbers) != places or unused:
        problem = f"{len(taken)} starts have {len(numbers)} of {places} places"
        report.violations.append(f"{problem}, unused: {unused}")
    struck = Counter(note.name for note in _edits_of(yard))
    for name in sorted(set(names) | set(struck)):
        if struck[name] != (name in taken):
            report.violations.append(f"{name}: {struck[name]} strikes, place {name in taken}")


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
        pressed_before = ("in the meantime", "has ended", "Somebody has already chosen")
        if is_refused and not any(words in answer.text for words in pressed_before):
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
        """Return whether an execution is paused."""
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
    ways = {number: WAYS[number % len(WAYS)] for number in range(n)}
    expected = {number: int(way not in ("answer", "skip", "fail")) for number, way in ways.items()}
    _judge_charges(yard, DEBUGGED.name, expected, report)


def _judge_charges(
    yard: TeamServer, shape: str, expected: Mapping[int, int], report: Report
) -> None:
    """Each execution has so many charges; a repeated call has the key of the first."""
    calls = [json.loads(line) for line in yard.calls.read_text().splitlines()]
    keys: dict[int, set[str]] = {}
    for call in calls:
        if call["function"] == "charge":
            keys.setdefault(call["n"], set()).add(call["key"])
    for number, count in expected.items():
        got = len(keys.get(number, ()))
        if got != count:
            report.violations.append(f"{shape}-{number}: {got} charges, wanted {count}")


_EDITS = (
    "import json; from console.models import DebugEdit;"
    "print(json.dumps([[e.execution.name, e.what, e.state, e.before, e.after] for e in"
    " DebugEdit.objects.select_related('execution')]))"
)


@dataclass(frozen=True, slots=True)
class Note:
    """A note beside a history: what a person changed, or a fault that struck."""

    name: str
    what: str
    state: str
    before: str
    after: str

    @property
    def kind(self) -> str:
        """Return the type of the fault that struck."""
        return str(json.loads(self.after)["type"])

    @property
    def is_lost(self) -> bool:
        """Whether a fault has delayed an answer past the limit of its task."""
        return self.kind == "delay-callback" and bool(self.before)


def _edits_of(yard: TeamServer) -> list[Note]:
    """Return each note beside a history."""
    printed = yard.manage("shell", "--no-imports", "-c", _EDITS).strip().splitlines()[-1]
    return [Note(*row) for row in json.loads(printed)]


def _judge_edits(yard: TeamServer, n: int, report: Report) -> None:
    """What a person changed is noted once, however often it was said."""
    got = Counter((note.name, note.what) for note in _edits_of(yard))
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


__all__ = ["breakpoints", "faults", "next_starts", "pauses"]
