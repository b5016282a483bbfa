"""What is worth keeping in memory between steps?  Runs stepped last, and compiled machines."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING

from django.db import connection

import engine

if TYPE_CHECKING:
    from console.store.values import StoredValues


class Runs:
    """The runs that were stepped last, so that their next step need not parse a snapshot."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._runs: OrderedDict[int, tuple[int, engine.Run]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, execution_id: int, version: int, values: StoredValues) -> engine.Run | None:
        """Return the run of an execution if it is kept at exactly this version."""
        with self._lock:
            found = self._runs.get(execution_id)
        if found is None or found[0] != version:
            return None
        return found[1].reading(values)

    def put(self, execution_id: int, version: int, run: engine.Run) -> None:
        """Keep a run that was just committed; one that ended is dropped."""
        with self._lock:
            self._runs.pop(execution_id, None)
            if run.status == "RUNNING":
                self._runs[execution_id] = (version, run)
            while len(self._runs) > self._size:
                self._runs.popitem(last=False)

    def forget(self, execution_id: int) -> None:
        """Drop a run that may be wrong."""
        with self._lock:
            self._runs.pop(execution_id, None)


kept_runs = Runs(2_000)


class Machines:
    """Compiled machines by definition hash; a definition's row never changes."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._machines: OrderedDict[str, engine.Machine] = OrderedDict()

    def get(self, sha256: str) -> engine.Machine:
        """Return the machine of a stored definition."""
        machine = self._machines.get(sha256)
        if machine is None:
            with connection.cursor() as cursor:
                cursor.execute("SELECT text FROM console_definition WHERE sha256 = %s", [sha256])
                machine = engine.parse(cursor.fetchone()[0])
            self._machines[sha256] = machine
            while len(self._machines) > self._size:
                self._machines.popitem(last=False)
        return machine


machines = Machines(1_000)
