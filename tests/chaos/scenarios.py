"""The scenarios: one function for each kind of fault, injected while executions run."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
import time
from collections import Counter
from typing import TYPE_CHECKING

import psycopg
from botocore.exceptions import BotoCoreError, ClientError

from tests.chaos.clock import timers
from tests.chaos.database import Proxy, wait_until
from tests.chaos.failover import connections, pooled, promote, read_only, refused
from tests.chaos.freeze import freeze
from tests.chaos.fuzz import fuzz
from tests.chaos.guards import guards
from tests.chaos.hosts import clock_skew, data_disk_full, disk_full
from tests.chaos.life import restore, sigterm, upgrade
from tests.chaos.load import Load, Report
from tests.chaos.people import breakpoints, faults, next_starts, pauses
from tests.chaos.races import callbacks, stops
from tests.chaos.shapes import DEADLY, NESTED, SHAPES
from tests.chaos.silence import LONGEST_S, SilentProxy, blackholed, frozen, half_closed
from tests.chaos.silent_host import silent_host
from tests.chaos.stage import Size, begin, close
from tests.chaos.suites import crash_points, mutate_checker
from tests.postgres import SESSIONS, Postgres

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.chaos.team_server import TeamServer


def kill_workers(folder: Path, server: Postgres | None, size: Size) -> Report:
    """Kill -9 workers (on SQLite: the one process) while executions of all shapes run."""
    report = Report("kill-workers", size.seed)
    yard = begin(folder, server, size)
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
    return close(yard, load, report)


def _kill_one(yard: TeamServer, dice: random.Random) -> int:
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
    yard = begin(folder, server, size, lease_s=2.0)
    load = Load(yard)
    load.work()
    dice = random.Random(size.seed)
    starter = load.begin(size.n, size.per_s)
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
    return close(yard, load, report)


def _fenced(yard: TeamServer) -> int:
    line = "from console.models import Worker; print(sum(w.fenced for w in Worker.objects.all()))"
    return int(yard.manage("shell", "--no-imports", "-c", line).strip().splitlines()[-1])


def database(folder: Path, server: Postgres | None, size: Size) -> Report:
    """Restart PostgreSQL as a crash does, and cut the replies to commits."""
    assert server is not None
    report = Report("database", size.seed)
    proxy = Proxy(server.socket, 0.15, size.seed)
    yard = begin(folder, server, size, url=proxy.url)
    proxy.most = size.faults * 10
    load = Load(yard)
    load.work()
    starter = load.begin(size.n, size.per_s)
    restarts = 0
    while restarts < size.faults:
        time.sleep(max(size.n / size.per_s / size.faults - 0.5, 0.5))
        server.restart()
        restarts += 1
    starter.join()
    proxy.most = 0
    report.facts |= {"restarts": restarts, "ambiguous_commits": proxy.ambiguous}
    return close(yard, load, report)


def sessions(folder: Path, server: Postgres | None, size: Size) -> Report:
    """End sessions of PostgreSQL by force, and now and then crash it by killing one of them."""
    assert server is not None
    report = Report("sessions", size.seed)
    yard = begin(folder, server, size)
    load = Load(yard)
    load.work()
    starter = load.begin(size.n, size.per_s)
    ended = crashes = 0
    for turn in range(size.faults):
        time.sleep(max(size.n / size.per_s / size.faults, 0.1))
        with contextlib.suppress(psycopg.Error):
            if turn % 10 == 9:
                pid = server.ask(f"{SESSIONS} ORDER BY random() LIMIT 1")[0][0]
                os.kill(pid, signal.SIGKILL)
                crashes += 1
            else:
                ended += server.end_sessions()
    starter.join()
    report.facts |= {"sessions_ended": ended, "crashes": crashes}
    return close(yard, load, report)


def kill_web(folder: Path, server: Postgres | None, size: Size) -> Report:
    """Kill -9 what takes the starts; who got no answer asks again with the same name.

    Workers start and look at nested executions meanwhile: they need nothing of what is killed.
    """
    report = Report("kill-web", size.seed)
    yard = begin(folder, server, size)
    load = Load(yard, (SHAPES[0], *NESTED))
    dice = random.Random(size.seed)
    starter = load.begin(size.n, size.per_s, 16)
    kills = 0
    while kills < size.faults and starter.is_alive():
        time.sleep(dice.uniform(0.1, 0.6))
        yard.kill_web()
        yard.start_web()
        kills += 1
    starter.join()
    report.facts["kills"] = kills
    return close(yard, load, report)


def mixed(folder: Path, server: Postgres | None, size: Size) -> Report:
    """Kill web, workers and PostgreSQL and silence connections, while every shape runs.

    What the executions came to is judged by a client that knows the public API alone.
    """
    assert server is not None
    report = Report("mixed", size.seed)
    proxy = SilentProxy(server.socket)
    yard = begin(folder, server, size, url=proxy.url)
    load = Load(yard)
    load.work()
    dice = random.Random(size.seed)
    starter = load.begin(size.n, size.per_s)

    def kill_web_once() -> None:
        yard.kill_web()
        yard.start_web()

    strikes: dict[str, Callable[[], object]] = {
        "web": kill_web_once,
        "workers": lambda: _kill_one(yard, dice),
        "postmaster": server.restart,
        "blackholes": proxy.blackhole,
    }
    struck = Counter[str]()
    for turn in range(size.faults):
        time.sleep(size.n / size.per_s / (size.faults + 1))
        name = list(strikes)[turn % len(strikes)]
        strikes[name]()
        struck[name] += 1
    starter.join()
    close(yard, load, report)
    report.facts |= {**struck, "standstill_s": round(load.standstill_s(), 1)}
    if load.standstill_s() >= LONGEST_S:
        report.violations.append(f"work stood still for {load.standstill_s():.1f} s")
    return report


def poison(folder: Path, server: Postgres | None, size: Size) -> Report:
    """A function that kills its process ends its own execution; the others go on.

    On SQLite the process is the server itself, which is started again each time, as by systemd.
    """
    report = Report("poison", size.seed)
    yard = begin(folder, server, size)
    load = Load(yard)
    with _restarts(yard) if yard.workers is None else contextlib.nullcontext():
        load.work()
        deadly = Load(yard, (DEADLY,))
        deadly.start(size.faults)
        load.start(size.n, size.per_s)
        ends = dict.fromkeys(deadly.acked, "")
        wait_until(lambda: _all_ended(yard, ends), 90, 0.5)
        for arn, end in ends.items():
            if end != "FAILED States.Runtime":
                report.violations.append(f"{arn}: {end}")
        report.facts["deadly"] = len(ends)
        return close(yard, load, report)


def _all_ended(yard: TeamServer, ends: dict[str, str]) -> bool:
    """Note how executions ended; a server that is being started again is asked later."""
    client = yard.client()
    with contextlib.suppress(BotoCoreError, ClientError):
        for arn in ends:
            shown = client.describe_execution(executionArn=arn)
            ends[arn] = f"{shown['status']} {shown.get('error')}"
        return not any(end.startswith("RUNNING") for end in ends.values())
    return False


@contextlib.contextmanager
def _restarts(yard: TeamServer) -> Iterator[None]:
    """Start the server again whenever it has died."""
    over = threading.Event()

    def watch() -> None:
        while not over.wait(0.05):
            if yard.web is not None and yard.web.poll() == -signal.SIGKILL:
                with contextlib.suppress(RuntimeError):  # it has died again before it answered
                    yard.start_web()

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()


SCENARIOS: dict[str, Callable[[Path, Postgres | None, Size], Report]] = {
    "kill-workers": kill_workers,
    "zombies": zombies,
    "database": database,
    "kill-web": kill_web,
    "sessions": sessions,
    "mixed": mixed,
    "blackholed": blackholed,
    "half-closed": half_closed,
    "frozen": frozen,
    "silent-host": silent_host,
    "read-only": read_only,
    "promote": promote,
    "pooled": pooled,
    "connections": connections,
    "refused": refused,
    "callbacks": callbacks,
    "stops": stops,
    "pauses": pauses,
    "breakpoints": breakpoints,
    "faults": faults,
    "next-starts": next_starts,
    "sigterm": sigterm,
    "upgrade": upgrade,
    "restore": restore,
    "disk-full": disk_full,
    "data-disk-full": data_disk_full,
    "clock-skew": clock_skew,
    "timers": timers,
    "poison": poison,
    "freeze": freeze,
    "crash-points": crash_points,
    "mutate-checker": mutate_checker,
    "guards": guards,
    "fuzz": fuzz,
}
