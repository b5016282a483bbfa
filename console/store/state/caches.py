"""Caches of this process: the runs of recent steps, and immutable facts of executions."""

from __future__ import annotations

import contextlib
import threading
from collections import OrderedDict
from typing import NamedTuple

import engine


class Runs:
    """The runs of recent steps, so that their next step need not parse a snapshot."""

    def __init__(self, size: int, characters: int) -> None:
        """Limit the number of runs, and the characters of their data."""
        self._size = size
        self._room = characters
        self._runs: OrderedDict[int, tuple[int, engine.Run, int]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, execution_id: int, version: int, values: engine.Values) -> engine.Run | None:
        """Return the run of an execution if it is cached at exactly this version."""
        with self._lock:
            entry = self._runs.get(execution_id)
        if entry is None or entry[0] != version:
            return None
        return entry[1].reading(values)

    def latest(self, execution_id: int) -> tuple[int, engine.Run] | None:
        """Return version and run of an execution after this process's last commit, if cached."""
        with self._lock:
            entry = self._runs.get(execution_id)
        return None if entry is None else entry[:2]

    def put(self, execution_id: int, version: int, run: engine.Run) -> None:
        """Cache a run after its commit; drop a finished run."""
        entry = (version, run.reading(_NOTHING), _weight(run))  # the values go with their commit
        with self._lock:
            self._drop(execution_id)
            if run.status == engine.ExecutionStatus.RUNNING:
                self._runs[execution_id] = entry
                self._room -= entry[2]
            while self._runs and (len(self._runs) > self._size or self._room < 0):
                self._drop(next(iter(self._runs)))

    def _drop(self, execution_id: int) -> None:
        dropped = self._runs.pop(execution_id, None)
        if dropped is not None:
            self._room += dropped[2]

    def forget(self, execution_id: int) -> None:
        """Drop a run that may be outdated."""
        with self._lock:
            self._drop(execution_id)


_NOTHING = engine.DictValues()
_FRAME = 400  # estimated size of a line of control without its data, in characters


def _weight(run: engine.Run) -> int:
    """Estimate the characters of a run in memory."""
    lines = sum(len(frame.input) + len(frame.variables) + _FRAME for frame in run.frames.values())
    return lines + len(run.about.get("input", ""))


kept_runs = Runs(1_000, 32_000_000)


# -- facts -----------------------------------------------------------------------------------------


_FACTS = 2_000
_facts: OrderedDict[int, ExecutionFacts] = OrderedDict()


class Belongs(NamedTuple):
    """The owners of an execution, which never change: ``Execution`` has these columns."""

    map_run: int | None
    project: int
    parent: int | None
    parent_task: int | None


class ExecutionFacts(NamedTuple):
    """Immutable facts of an execution. ``machine_arn``: without a label."""

    arn: str
    definition: str
    machine_arn: str
    belongs: Belongs


def find_facts(execution_id: int) -> ExecutionFacts | None:
    """Return the facts of an execution, None if not cached."""
    return _facts.get(execution_id)


def keep_facts(execution_id: int, facts: ExecutionFacts) -> ExecutionFacts:
    """Cache the facts of an execution, dropping the oldest, and return them."""
    _facts[execution_id] = facts
    while len(_facts) > _FACTS:
        with contextlib.suppress(KeyError):  # another thread was first
            _facts.popitem(last=False)
    return facts
