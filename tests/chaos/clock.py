"""Check that no timer fires early or late and that none is lost."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from tests.chaos.database import wait_until
from tests.chaos.load import Report
from tests.chaos.shapes import TIMER
from tests.chaos.stage import begin, close
from tests.chaos.team_server import machine_arn

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.chaos.stage import Size
    from tests.postgres import Postgres


def timers(folder: Path, server: Postgres | None, size: Size) -> Report:
    """Many timers due in one second, then single ones with nothing else to do."""
    report = Report("timers", size.seed)
    yard = begin(folder, server, size)
    client = yard.client(64)
    lead_s = size.n / 150 + 10
    at = _whole(datetime.now(UTC) + timedelta(seconds=lead_s))
    herd = _start_timers(client, size.n, lambda _: at)
    report.facts["set_before_s"] = round((at - datetime.now(UTC)).total_seconds(), 1)
    _late(client, herd, report, "herd")
    base = _whole(datetime.now(UTC) + timedelta(seconds=3))
    single = _start_timers(client, min(40, size.n // 4), lambda k: base + timedelta(seconds=k // 3))
    _late(client, single, report, "idle")
    report.n = len(herd) + len(single)
    if report.facts["idle_p99_s"] > 1.0:
        report.violations.append(f"idle timers are {report.facts['idle_p99_s']} s late")
    return close(yard, None, report)


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


def _any_runs(client: Any) -> bool:
    machine = machine_arn(TIMER.name)
    answer = client.list_executions(stateMachineArn=machine, statusFilter="RUNNING", maxResults=1)
    return bool(answer["executions"])


def _late(client: Any, started: list[tuple[str, datetime]], report: Report, name: str) -> None:
    def one(about: tuple[str, datetime]) -> float | None:
        arn, due = about
        execution: dict[str, Any] = {}

        def ended() -> bool:
            execution.update(client.describe_execution(executionArn=arn))
            return bool(execution["status"] != "RUNNING")

        if not wait_until(ended, max((due - datetime.now(UTC)).total_seconds(), 0) + 120, 0.5):
            report.violations.append(f"{arn} was never woken")
            return None
        return float((execution["stopDate"] - due).total_seconds())

    time.sleep(max((started[-1][1] - datetime.now(UTC)).total_seconds() + 2, 0))
    # Ten thousand answers cost the server as much as the timers do: it is asked when they are done.
    wait_until(lambda: not _any_runs(client), 120, 0.5)
    with ThreadPoolExecutor(8) as pool:
        late = sorted(delay for delay in pool.map(one, started) if delay is not None)
    report.violations += [f"{-delay} s early" for delay in late if delay < -0.001]
    report.facts[f"{name}_p50_s"] = round(late[len(late) // 2], 3)
    report.facts[f"{name}_p99_s"] = round(late[int(len(late) * 0.99) - 1], 3)
