"""Check I1, I11 and I16 by samples: running executions can always move, and only forward.

Sampled once a second while workers are busy, killed, or started again.
"""

from __future__ import annotations

import hashlib
import time
from typing import TYPE_CHECKING, NamedTuple

from console.invariants import progress
from console.invariants.found import FoundExecution, batches
from console.invariants.violation import Violation
from console.invariants.walk import Walk
from console.models import Execution

if TYPE_CHECKING:
    from collections.abc import Iterator

_WATCHED = 1_000  # executions whose histories are compared from sample to sample
_EVERY_S = 1.0


class Seen(NamedTuple):
    """How far an execution was: its version, and the beginning of its history."""

    version: int
    events: int
    digest: str


class Watch:
    """Samples of what runs."""

    def __init__(self) -> None:
        """Nothing was seen yet."""
        self._seen: dict[int, Seen] = {}
        self.samples = 0

    def run(self, seconds: float) -> Iterator[Violation]:
        """Sample once a second for so long."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            begun = time.monotonic()
            yield from self.sample()
            time.sleep(max(0.0, _EVERY_S - (time.monotonic() - begun)))

    def sample(self) -> Iterator[Violation]:
        """Look once at all that runs, and again at what was seen before."""
        self.samples += 1
        for batch in batches(Execution.objects.filter(status="RUNNING")):
            for record in batch:
                for number, problem in progress.check_progress(record, Walk(())):
                    yield Violation(number, record.execution.arn, problem)
                self._note(record)
        for batch in batches(Execution.objects.filter(pk__in=list(self._seen))):
            for record in batch:
                yield from self._compare(record)

    def _note(self, record: FoundExecution) -> None:
        if len(self._seen) < _WATCHED and record.run is not None:
            self._seen.setdefault(record.execution.pk, _seen(record, len(record.events)))

    def _compare(self, record: FoundExecution) -> Iterator[Violation]:
        """Yield what was seen before and changed since: events, or a version that went back."""
        before = self._seen[record.execution.pk]
        now = _seen(record, before.events)
        arn = record.execution.arn
        if now.version < before.version:
            yield Violation("I11", arn, f"version {before.version} became {now.version}")
        if now.digest != before.digest:
            yield Violation("I16", arn, f"the first {before.events} events are others than before")
        if record.running:
            self._seen[record.execution.pk] = _seen(record, len(record.events))
        else:
            del self._seen[record.execution.pk]


def _seen(record: FoundExecution, events: int) -> Seen:
    digest = hashlib.sha256(repr(record.events[:events]).encode()).hexdigest()
    return Seen(0 if record.run is None else record.run.version, events, digest)
