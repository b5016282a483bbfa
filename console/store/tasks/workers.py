"""Store the leases of worker processes, and let live workers take over the work of dead ones.

A lease is a row with an expiry. A worker that renews its lease in time is alive; the tasks of the
others are released. A process that was suspended for longer finds its lease removed, and takes a
new lease. Its writes under the old name are rejected: by the version of a run, by the row of a
task.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from django.conf import settings
from django.db.models import F, Model, QuerySet
from django.db.models.functions import Mod

from console.config.version import server_version
from console.db import clock
from console.db.writer import write
from console.models import Worker
from console.store.tasks import lost_calls

M = TypeVar("M", bound=Model)
_VERSION_LENGTH = 20
_MISSED_MS = 3_000  # at least: a worker renews its lease each second, or more rarely


@dataclass(frozen=True, slots=True)
class Share:
    """This worker's share of the sweep: executions whose number gives ``rank``."""

    rank: int = 0
    of: int = 1

    @property
    def leads(self) -> bool:
        """Return whether this worker leads: it runs the global jobs."""
        return self.rank == 0

    def part(self, rows: QuerySet[M], column: str = "execution_id") -> QuerySet[M]:
        """Return the rows in this worker's share."""
        if self.of == 1:
            return rows
        mine: QuerySet[Any] = rows.annotate(share=Mod(F(column), self.of))
        return mine.filter(share=self.rank)

    def has(self, number: int) -> bool:
        """Return whether a number is in this worker's share."""
        return number % self.of == self.rank


def register() -> str:
    """Take a lease and return its name."""
    now_ms = clock.now_ms()
    row = Worker(
        name=uuid.uuid4().hex[:16],
        host=host_name(),
        pid=os.getpid(),
        version=version_of_workers(),
        started_ms=now_ms,
        lease_until_ms=now_ms + _ttl_ms(),
    )
    write(lambda: row.save(force_insert=True))
    return row.name


def renew_lease(name: str, steps: int = 0, fenced: int = 0, problem: str = "") -> bool:
    """Renew a lease that has not expired; return whether it is valid.

    Note the steps since the last renewal, and the problem that the worker has now.
    """
    now_ms = clock.now_ms()
    leases = Worker.objects.filter(name=name, lease_until_ms__gt=now_ms)
    changes = {
        "steps": F("steps") + steps,
        "fenced": F("fenced") + fenced,
        "problem": problem[:200],
    }
    # not by ``write``: a single statement is a transaction, and leases exist on PostgreSQL only
    return leases.update(lease_until_ms=now_ms + _ttl_ms(), **changes) == 1


def announce_stop(name: str) -> None:
    """Note that a worker is about to stop: it gets no more signals of other processes."""
    Worker.objects.filter(name=name).update(problem=Worker.STOPS)


TEAM_SQL = (
    "SELECT json_agg(json_build_array(name, host, pid, lease_until_ms) ORDER BY name)::text"
    " FROM console_worker"
)
"""An expression of PostgreSQL with the leases of all workers, for ``team_share``."""


def team_share(name: str, team: str | None) -> tuple[Share, list[str]]:
    """Return a worker's share among the live workers, and the names of dead workers.

    ``team``: the value of ``TEAM_SQL``. A worker that has missed two renewals may be gone: the
    others also take its share, before its lease ends. If it is only slow, it keeps its share, and
    an execution may be woken twice.
    """
    now_ms, this_host = clock.now_ms(), host_name()
    living: list[str] = []
    dead: list[str] = []
    leases = json.loads(team or "[]")
    late_ms = max((lease_until_ms for *_, lease_until_ms in leases), default=0) - missed_ms()
    for worker, host, pid, lease_until_ms in leases:
        if lease_until_ms <= now_ms or (host == this_host and not is_running(pid)):
            dead.append(worker)
        elif lease_until_ms > late_ms or worker == name:
            living.append(worker)
    part = Share(living.index(name), len(living)) if name in living else Share()
    return part, dead


@dataclass(frozen=True, slots=True)
class ListedWorker:
    """A worker as pages show it."""

    row: Worker
    alive: bool


def list_workers() -> list[ListedWorker]:
    """Return the live workers, and dead workers whose work is not taken over yet."""
    now_ms = clock.now_ms()
    rows = Worker.objects.order_by("started_ms", "name")
    return [ListedWorker(row, row.lease_until_ms > now_ms) for row in rows]


def live_worker_names() -> list[str]:
    """Return the names of the workers whose leases have not ended."""
    now_ms = clock.now_ms()
    leases = Worker.objects.filter(lease_until_ms__gt=now_ms)
    return list(leases.values_list("name", flat=True))


def deregister(name: str) -> int:
    """Return a lease and release its tasks; return how many."""

    def store() -> int:
        Worker.objects.filter(name=name).delete()
        return lost_calls.recover_from(live_worker_names())

    return write(store)


def remove_dead(dead: list[str]) -> int:
    """Delete the leases of dead workers and release their tasks; return how many."""

    def store() -> int:
        Worker.objects.filter(name__in=dead).delete()
        return lost_calls.recover_from(live_worker_names())

    return write(store)


def version_of_workers() -> str:
    """Return this program's version for the rows of workers."""
    return server_version().removeprefix("stateyard ")[:_VERSION_LENGTH]


def missed_ms() -> int:
    """Return how far the lease of a worker is behind the others' after two missed renewals."""
    return max(int(settings.STATEYARD_LEASE_S * 400), _MISSED_MS)


def _ttl_ms() -> int:
    return int(settings.STATEYARD_LEASE_S * 1000)


def host_name() -> str:
    """Return the name of this machine or container; process ids are unique within one."""
    space = Path("/proc/self/ns/pid")
    return f"{socket.gethostname()[:90]}/{space.stat().st_ino if space.exists() else 0}"


def is_running(pid: int) -> bool:
    """Return whether a process of this machine exists."""
    if sys.platform == "win32":  # os.kill would send Ctrl-C there
        return _is_running_on_windows(pid)
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _is_running_on_windows(pid: int) -> bool:
    import ctypes

    synchronize, wait_timeout = 0x00100000, 0x102
    kernel: Any = ctypes.windll.kernel32  # type: ignore[attr-defined]  # on Windows it is there
    handle = kernel.OpenProcess(synchronize, False, pid)
    if not handle:
        return False
    running = kernel.WaitForSingleObject(handle, 0) == wait_timeout
    kernel.CloseHandle(handle)
    return bool(running)
