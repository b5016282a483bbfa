"""Hosts with a full disk or a wrong clock."""

from __future__ import annotations

import contextlib
import json
import random
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING

from tests.chaos.load import Load, Report
from tests.chaos.stage import begin, close

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.chaos.stage import Size
    from tests.chaos.team_server import TeamServer
    from tests.postgres import Postgres

_FULL_S = 6.0
_FAKETIME = "/usr/lib/*/faketime/libfaketime.so.1"


@contextlib.contextmanager
def small_disk(place: Path, megabytes: int) -> Iterator[None]:
    """Mount a disk of that size at a folder, in memory; root alone may."""
    place.mkdir(parents=True, exist_ok=True)
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m,mode=755", "none", str(place)],
        check=True,
    )
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=False)


def data_disk_full(folder: Path, server: Postgres | None, size: Size) -> Report:
    """Fill the disk of the data folder before the first step; PostgreSQL has a disk of its own.

    Workers go on without a crash journal, and ``/readyz`` says so. With room again they make one.
    """
    report = Report("data-disk-full", size.seed)
    ballast = folder / "data" / "ballast"
    _fill(ballast)
    yard = begin(folder, server, size)
    load = Load(yard)
    load.work()
    starter = load.begin(size.n, size.per_s)
    starter.join()
    with urllib.request.urlopen(f"http://127.0.0.1:{yard.port}/readyz", timeout=30) as answer:
        warnings = json.loads(answer.read())["warnings"]
    if not any("no crash journal" in warning for warning in warnings):
        report.violations.append(f"it did not say that a journal is missing: {warnings}")
    ballast.unlink()
    report.facts |= {"warnings": len(warnings)}
    return close(yard, load, report)


def disk_full(folder: Path, server: Postgres | None, size: Size) -> Report:
    """Fill the database's disk for some seconds; with room again, all goes on by itself.

    PostgreSQL that has ended itself, having no room for its log, is started again, as a service
    manager does.
    """
    report = Report("disk-full", size.seed)
    disk = folder / ("data" if server is None else "pg")
    yard = begin(folder, server, size)
    load = Load(yard)
    load.work()
    starter = load.begin(size.n, size.per_s)
    red = down = 0
    for _ in range(size.faults):
        time.sleep(max(size.n / size.per_s / size.faults - _FULL_S, 2.0))
        ballast = disk / "ballast"
        ended = time.monotonic() + _FULL_S
        while time.monotonic() < ended:
            _fill(ballast)
            time.sleep(0.5)
        red += not _ready(yard)
        ballast.unlink()
        if server is not None and not server.answers():
            down += 1
            server.restart()
        if server is None and yard.web is not None and yard.web.poll() is not None:
            report.violations.append(f"the process ended itself: {yard.web.returncode}")
            yard.start_web()
    starter.join()
    report.facts |= {"full": size.faults, "not_ready": red, "database_down": down}
    if not red:
        report.violations.append("it said it was ready with a full disk")
    return close(yard, load, report)


def _fill(ballast: Path) -> None:
    """Write until nothing more goes in."""
    with ballast.open("ab", buffering=0) as out, contextlib.suppress(OSError):
        for chunk in (1 << 20, 1 << 12, 1):
            with contextlib.suppress(OSError):
                while out.write(b"\0" * chunk):
                    pass


def _ready(yard: TeamServer) -> bool:
    try:
        urllib.request.urlopen(f"http://127.0.0.1:{yard.port}/readyz", timeout=5).close()
    except (urllib.error.URLError, OSError):
        return False
    return True


def clock_skew(folder: Path, server: Postgres | None, size: Size) -> Report:
    """Workers whose clocks are ten minutes off, or jump by an hour, fire no timer early or late.

    Needs Debian's package faketime.
    """
    assert server is not None
    libraries = sorted(Path("/").glob(_FAKETIME[1:]))
    if not libraries:
        raise RuntimeError(f"no {_FAKETIME}: install the package faketime")
    report = Report("clock-skew", size.seed)
    yard = begin(folder, server, size)
    yard.end_workers()
    offsets = [folder / f"clock-{number}" for number in range(size.workers)]
    for offset, path in zip(("+600", "-600", "+0", "+0"), offsets, strict=False):
        path.write_text(offset)
    for path in offsets:
        yard.other_worker(
            LD_PRELOAD=str(libraries[0]),
            FAKETIME_TIMESTAMP_FILE=str(path),
            FAKETIME_NO_CACHE="1",
            FAKETIME_DONT_FAKE_MONOTONIC="1",
        )
    load = Load(yard)
    load.work()
    starter = load.begin(size.n, size.per_s)
    dice = random.Random(size.seed)
    for _ in range(size.faults):
        time.sleep(size.n / size.per_s / size.faults)
        jump = dice.choice(["-3600", "+3600", "-600", "+600", "+0"])
        dice.choice(offsets[2:] or offsets).write_text(jump)
    starter.join()
    report.facts["jumps"] = size.faults
    close(yard, load, report)
    report.violations += _early(load)
    return report


def _early(load: Load) -> list[str]:
    """Return the executions that took less time than their waits."""
    return [f"{name} ended {-late:.3f} s early" for late, name in load.lateness if late < -0.001]
