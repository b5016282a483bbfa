"""Check three invariants by sampling: running executions can continue, and only move forward.

docs/reference/invariants.md defines them: I1 (something will move a running execution on), I11 (its
version only grows) and I16 (a history read earlier is still the beginning of the present one). One
sample a second is taken, while workers are busy, are killed, or restart.
"""

from __future__ import annotations

import hashlib
import time
from typing import TYPE_CHECKING, NamedTuple

from console.features.doctor import progress
from console.features.doctor.stored_executions import StoredExecution, Violation, batches
from console.features.doctor.walk import Walk
from console.models import Execution

if TYPE_CHECKING:
    from collections.abc import Iterator

_MOST = 1_000  # executions whose histories are compared from sample to sample
_EVERY_S = 1.0


class SampledState(NamedTuple):
    """The progress of an execution at a sample.

    ``version``: the version of its run; ``events``, ``digest``: number and SHA-256 of its history's
    events.
    """

    version: int
    events: int
    digest: str


class Watch:
    """Samples of all running executions, each compared with the previous one."""

    def __init__(self) -> None:
        """Start without a sample."""
        self._sampled: dict[int, SampledState] = {}
        self.samples = 0

    def run(self, seconds: float) -> Iterator[Violation]:
        """Sample once a second for some seconds; yield the violations."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            sample_start = time.monotonic()
            yield from self.sample()
            time.sleep(max(0.0, _EVERY_S - (time.monotonic() - sample_start)))

    def sample(self) -> Iterator[Violation]:
        """Check running executions (I1), and the executions of the last sample (I11, I16)."""
        self.samples += 1
        for batch in batches(Execution.objects.filter(status="RUNNING")):
            for record in batch:
                for invariant, problem in progress.check_progress(record, Walk(())):
                    yield Violation(invariant, record.execution.arn, problem)
                self._note(record)
        for batch in batches(Execution.objects.filter(pk__in=list(self._sampled))):
            for record in batch:
                yield from self._compare(record)

    def _note(self, record: StoredExecution) -> None:
        """Remember a new execution's state for the next sample."""
        if len(self._sampled) < _MOST and record.run is not None:
            self._sampled.setdefault(
                record.execution.pk, _sampled_state(record, len(record.events))
            )

    def _compare(self, record: StoredExecution) -> Iterator[Violation]:
        """Yield versions that went back, and events that have changed since they were read."""
        before = self._sampled[record.execution.pk]
        now = _sampled_state(record, before.events)
        arn = record.execution.arn
        if now.version < before.version:
            yield Violation("I11", arn, f"version {before.version} became {now.version}")
        if now.digest != before.digest:
            yield Violation("I16", arn, f"the first {before.events} events are others than before")
        if record.running:
            self._sampled[record.execution.pk] = _sampled_state(record, len(record.events))
        else:
            del self._sampled[record.execution.pk]


def _sampled_state(record: StoredExecution, events: int) -> SampledState:
    """Return the state of an execution, with the first ``events`` events of its history."""
    digest = hashlib.sha256(repr(record.events[:events]).encode()).hexdigest()
    return SampledState(0 if record.run is None else record.run.version, events, digest)
