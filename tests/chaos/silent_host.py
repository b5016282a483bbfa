"""Receivers of one project accept and say nothing, while processes are killed.

Another project's HTTP Tasks, notifications and schedules go on. Each of its executions is told of
with one event id, each of its schedules starts once, and nothing of either project is lost.
"""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from typing import TYPE_CHECKING

from tests.chaos.load import Load, Report
from tests.chaos.neighbours import LOUD, Neighbours, machine_arn
from tests.chaos.stage import Size, close
from tests.chaos.team_server import TeamServer

if TYPE_CHECKING:
    from pathlib import Path

    from tests.chaos.neighbours import Delays
    from tests.postgres import Postgres

LONGEST_S = 30.0
"""How late anything of the quiet project may be: a dead leader's lease takes ten seconds."""


def silent_host(folder: Path, server: Postgres | None, size: Size) -> Report:
    """Kill workers, or the one process, beside a project whose receivers are silent."""
    report = Report("silent-host", size.seed)
    yard = TeamServer(folder, None if server is None else server.url)
    both = Neighbours(yard)
    try:
        yard.start_web()
        if server is not None:
            yard.start_workers(size.workers)
        yard.prepare()
        both.prepare()
        load = Load(yard)
        load.work()
        both.make_noise(size.n)
        starter = load.begin(size.n, size.per_s)
        harm = threading.Thread(target=_strike, args=(yard, size), daemon=True)
        harm.start()
        delays = both.measure("beside", max(10, size.n // 10), 1.0)
        harm.join()
        starter.join()
        _judge(both, delays, size, report)
        return close(yard, load, report)
    finally:
        both.close()
        yard.stop()


def _strike(yard: TeamServer, size: Size) -> None:
    """Kill a worker now and then, or the one process there is, which is started again."""
    dice = random.Random(size.seed)
    for _ in range(size.faults):
        time.sleep(dice.uniform(2.0, 5.0))
        pids = yard.worker_pids() if yard.workers is not None else []
        if pids:
            os.kill(dice.choice(pids), signal.SIGKILL)
        elif yard.workers is None:
            yard.kill_web()
            yard.start_web()


def _judge(both: Neighbours, delays: Delays, size: Size, report: Report) -> None:
    for kind in ("tasks", "notices", "schedules"):
        latest = max(getattr(delays, kind))
        report.facts[f"{kind}_latest_s"] = round(latest, 1)
        if latest >= LONGEST_S:
            report.violations.append(f"{kind} of the quiet project were {latest:.1f} s late")
    for arn, told in both.listener.told.items():
        if len({event for _, event in told}) > 1:
            report.violations.append(f"{arn} was told of under two ids")
    for moment, begun in both.scheduled("beside").items():
        if len(begun) > 1:
            report.violations.append(f"the schedule of {moment} started {len(begun)} times")
    states = both.client(LOUD)
    pages = states.get_paginator("list_executions").paginate(
        stateMachineArn=machine_arn(LOUD, "plain")
    )
    ended = sum(row["status"] == "SUCCEEDED" for page in pages for row in page["executions"])
    if ended != size.n:
        report.violations.append(f"{ended} of {size.n} executions of the loud project ended")
