"""What is done to the processes while the executions run?  One function a scenario."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from tests.chaos.database import Postgres, Proxy, wait_until
from tests.chaos.load import Load, Report, count_calls, execution_arn, invariants
from tests.chaos.shapes import ACTIVITY, CALLBACK, DEADLY, SHAPES, TIMER
from tests.chaos.suites import crash_points, mutate_checker
from tests.chaos.yard import Yard, machine_arn

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Size:
    """How much of it: executions, faults, workers, starts a second."""

    n: int
    faults: int
    workers: int = 4
    per_s: float = 20.0
    seed: int = 1


def kill_workers(folder: Path, server: Postgres | None, size: Size) -> Report:
    """Kill -9 workers (on SQLite: the one process) while executions of all shapes run."""
    report = Report("kill-workers", size.seed)
    yard = _yard(folder, server, size)
    load = Load(yard)
    load.work()
    dice = random.Random(size.seed)
    kills = 0
    done = threading.Event()

    def kill() -> None:
        nonlocal kills
        pause = max(size.n / size.per_s / max(size.faults, 1), 0.05)
        while kills < size.faults and not (done.is_set() and kills >= size.faults):
            time.sleep(pause * dice.uniform(0.5, 1.5))
            kills += _kill_one(yard, dice)

    killer = threading.Thread(target=kill)
    killer.start()
    load.start(size.n, size.per_s)
    done.set()
    killer.join()
    report.facts["kills"] = kills
    return _close(yard, load, report)


def _kill_one(yard: Yard, dice: random.Random) -> int:
    if yard.workers is None:
        yard.kill_web()
        yard.start_web()
        return 1
    pids = yard.worker_pids()
    if not pids:
        return 0
    with contextlib.suppress(ProcessLookupError):
        os.kill(dice.choice(pids), signal.SIGKILL)
        return 1
    return 0


def zombies(folder: Path, server: Postgres | None, size: Size) -> Report:
    """Stop workers for longer than their lease, and let them go on."""
    report = Report("zombies", size.seed)
    yard = _yard(folder, server, size, lease_s=2.0)
    load = Load(yard)
    load.work()
    dice = random.Random(size.seed)
    starter = threading.Thread(target=load.start, args=(size.n, size.per_s))
    starter.start()
    stopped = 0
    while stopped < size.faults:
        chosen = dice.sample(yard.worker_pids(), min(2, len(yard.worker_pids())))
        for pid in chosen:
            os.kill(pid, signal.SIGSTOP)
        time.sleep(3.0)
        for pid in chosen:
            os.kill(pid, signal.SIGCONT)
        stopped += len(chosen)
        time.sleep(0.3)
    starter.join()
    load.wait(60)
    time.sleep(1.5)  # the workers tell how often they were refused when they renew their leases
    report.facts |= {"stopped": stopped, "fenced": _fenced(yard)}
    return _close(yard, load, report)


def _fenced(yard: Yard) -> int:
    line = "from console.models import Worker; print(sum(w.fenced for w in Worker.objects.all()))"
    return int(yard.manage("shell", "--no-imports", "-c", line).strip().splitlines()[-1])


def database(folder: Path, server: Postgres | None, size: Size) -> Report:
    """Restart PostgreSQL as a crash does, and cut the replies to commits."""
    assert server is not None
    report = Report("database", size.seed)
    proxy = Proxy(server.socket, 0.15, size.seed)
    yard = _yard(folder, server, size, url=proxy.url)
    proxy.most = size.faults * 8
    load = Load(yard)
    load.work()
    starter = threading.Thread(target=load.start, args=(size.n, size.per_s))
    starter.start()
    restarts = 0
    while restarts < size.faults:
        time.sleep(max(size.n / size.per_s / size.faults - 0.5, 0.5))
        server.restart()
        restarts += 1
    starter.join()
    proxy.most = 0
    report.facts |= {"restarts": restarts, "ambiguous_commits": proxy.ambiguous}
    return _close(yard, load, report)


def kill_web(folder: Path, server: Postgres | None, size: Size) -> Report:
    """Kill -9 what takes the starts; who got no answer asks again with the same name."""
    report = Report("kill-web", size.seed)
    yard = _yard(folder, server, size)
    load = Load(yard, SHAPES[:1])
    dice = random.Random(size.seed)
    starter = threading.Thread(target=load.start, args=(size.n, size.per_s, 16))
    starter.start()
    kills = 0
    while kills < size.faults and starter.is_alive():
        time.sleep(dice.uniform(0.1, 0.6))
        yard.kill_web()
        yard.start_web()
        kills += 1
    starter.join()
    report.facts["kills"] = kills
    return _close(yard, load, report)


def callbacks(folder: Path, server: Postgres | None, size: Size) -> Report:
    """Eight senders race for each token: one wins, and the history has what it sent."""
    report = Report("callbacks", size.seed)
    yard = _yard(folder, server, size)
    load = Load(yard, (CALLBACK,))
    load.start(size.n, 0)
    client = yard.client(64)
    wins: dict[str, list[int]] = {}

    def race(pool: ThreadPoolExecutor) -> None:
        task = client.get_activity_task(activityArn=ACTIVITY)
        token = task["taskToken"]
        results = list(pool.map(lambda k: _send(client, token, k, report), range(8)))
        number = json.loads(task["input"])["n"]
        wins[execution_arn("callback", f"callback-{number}")] = [k for k in results if k >= 0]

    with ThreadPoolExecutor(8) as senders:
        for _ in range(size.n):
            race(senders)
    load.wait(60)
    for arn, won in wins.items():
        got = client.describe_execution(executionArn=arn).get("output")
        if len(won) != 1 or got != str(won[0]):
            report.violations.append(f"{arn}: answered 200 to {won}, has {got}")
    report.n = len(wins)
    return _close(yard, None, report)


def _send(client: Any, token: str, number: int, report: Report) -> int:
    """Send an outcome; return its number if it was taken, else -1."""
    try:
        client.send_task_success(taskToken=token, output=str(number))
    except client.exceptions.TaskTimedOut:
        return -1
    except client.exceptions.ClientError as error:
        report.violations.append(str(error))
        return -1
    return number


def timers(folder: Path, server: Postgres | None, size: Size) -> Report:
    """Many timers due in one second, then single ones with nothing else to do."""
    report = Report("timers", size.seed)
    yard = _yard(folder, server, size)
    client = yard.client(64)
    lead_s = size.n / 150 + 10
    at = _whole(datetime.now(UTC) + timedelta(seconds=lead_s))
    herd = _start_timers(client, size.n, lambda _: at)
    report.facts["set_before_s"] = round((at - datetime.now(UTC)).total_seconds(), 1)
    _late(client, herd, report, "herd")
    base = _whole(datetime.now(UTC) + timedelta(seconds=3))
    single = _start_timers(client, 40, lambda k: base + timedelta(seconds=k // 3))
    _late(client, single, report, "idle")
    report.n = len(herd) + len(single)
    if report.facts["idle_p99_s"] > 1.0:
        report.violations.append(f"idle timers are {report.facts['idle_p99_s']} s late")
    return _close(yard, None, report)


def _whole(moment: datetime) -> datetime:
    """AWS ignores the part of a Timestamp below a second."""
    return moment.replace(microsecond=0)


def _start_timers(client: Any, n: int, at: Callable[[int], datetime]) -> list[tuple[str, datetime]]:
    def one(number: int) -> tuple[str, datetime]:
        due = at(number)
        text = json.dumps({"at": due.isoformat(timespec="milliseconds").replace("+00:00", "Z")})
        answer = client.start_execution(stateMachineArn=machine_arn(TIMER.name), input=text)
        return answer["executionArn"], due

    with ThreadPoolExecutor(8) as pool:
        return list(pool.map(one, range(n)))


def _late(client: Any, started: list[tuple[str, datetime]], report: Report, name: str) -> None:
    def one(about: tuple[str, datetime]) -> float | None:
        arn, due = about
        found: dict[str, Any] = {}

        def ended() -> bool:
            found.update(client.describe_execution(executionArn=arn))
            return bool(found["status"] != "RUNNING")

        if not wait_until(ended, max((due - datetime.now(UTC)).total_seconds(), 0) + 120, 0.5):
            report.violations.append(f"{arn} was never woken")
            return None
        return float((found["stopDate"] - due).total_seconds())

    time.sleep(max((started[-1][1] - datetime.now(UTC)).total_seconds() + 2, 0))
    with ThreadPoolExecutor(8) as pool:
        late = sorted(one for one in pool.map(one, started) if one is not None)
    report.violations += [f"{-one} s early" for one in late if one < -0.001]
    report.facts[f"{name}_p50_s"] = round(late[len(late) // 2], 3)
    report.facts[f"{name}_p99_s"] = round(late[int(len(late) * 0.99) - 1], 3)


def poison(folder: Path, server: Postgres | None, size: Size) -> Report:
    """A function that kills its process ends its own execution; the others go on."""
    report = Report("poison", size.seed)
    yard = _yard(folder, server, size)
    load = Load(yard)
    load.work()
    client = yard.client()
    text = json.dumps({"n": 0})
    bad = [
        client.start_execution(stateMachineArn=machine_arn(DEADLY.name), input=text)["executionArn"]
        for _ in range(size.faults)
    ]
    load.start(size.n, size.per_s)
    wait_until(
        lambda: all(client.describe_execution(executionArn=a)["status"] != "RUNNING" for a in bad),
        90,
        0.5,
    )
    for arn in bad:
        found = client.describe_execution(executionArn=arn)
        if (found["status"], found.get("error")) != ("FAILED", "States.Runtime"):
            report.violations.append(f"{arn}: {found['status']} {found.get('error')}")
    report.facts["deadly"] = len(bad)
    return _close(yard, load, report)


# -- beginning and end -----------------------------------------------------------------------------


def _yard(
    folder: Path,
    server: Postgres | None,
    size: Size,
    *,
    lease_s: float = 10.0,
    url: str | None = None,
) -> Yard:
    own = url or (None if server is None else server.url)
    yard = Yard(folder, own, lease_s=lease_s)
    yard.start_web()
    if own is not None:
        yard.start_workers(size.workers)
    yard.prepare()
    return yard


def _close(yard: Yard, load: Load | None, report: Report) -> Report:
    try:
        if load is not None:
            load.judge(report)
            count_calls(yard, report, None)
            load.end()
        invariants(yard, report)
    finally:
        yard.stop()
    return report


SCENARIOS: dict[str, Callable[[Path, Postgres | None, Size], Report]] = {
    "kill-workers": kill_workers,
    "zombies": zombies,
    "database": database,
    "kill-web": kill_web,
    "callbacks": callbacks,
    "timers": timers,
    "poison": poison,
    "crash-points": crash_points,
    "mutate-checker": mutate_checker,
}
