"""Group failures by machine, state, error and what their causes share."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from console.masking import masked_execution
from console.models import Execution
from console.statuses import ExecutionStatus
from console.store.executions.failed_states import failed_states
from console.web.core.causes import normalized_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from console.models import Project

STATUSES: tuple[str, ...] = (ExecutionStatus.FAILED, ExecutionStatus.TIMED_OUT)
MOST = 5_000
"""How many of the newest failures are grouped."""


@dataclass(frozen=True, slots=True)
class Failure:
    """How one execution failed. ``cause``: without what is different each time.

    ``machine``: its number, None if the machine was deleted; ``name``: of the execution.
    """

    number: int
    start_ms: int
    stop_ms: int | None
    machine_arn: str
    machine: int | None
    state: str
    error: str
    cause: str
    name: str = ""

    @property
    def machine_name(self) -> str:
        """Return the name of the machine as addresses have it: ``machine~label`` of a child."""
        return self.machine_arn.rpartition(":")[2].replace("/", "~")

    @property
    def owner_arn(self) -> str:
        """Return the ARN of the machine; of a child that one of its parent: labels are per run."""
        return self.machine_arn.partition("/")[0]

    @property
    def is_child(self) -> bool:
        """Tell whether it is of children of a Map Run: their machine's ARN ends in a label."""
        return "/" in self.machine_arn

    @property
    def state_text(self) -> str:
        """Return the state, "" where it has the name of the error."""
        if self.error and self.state == self.error:
            return ""
        return self.state or "Before the first state"

    @property
    def cause_text(self) -> str:
        """Return the cause without the name of the error before it."""
        return self.cause.removeprefix(f"{self.error}: ")

    @property
    def key(self) -> str:
        """Return the same text for the same kind of failure: 16 hexadecimal digits."""
        whose = f"{self.owner_arn}/" if self.is_child else self.owner_arn
        parts = (whose, self.state, self.error, self.cause)
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class FailureGroup:
    """Failures of one kind, newest first."""

    failures: tuple[Failure, ...]

    @property
    def like(self) -> Failure:
        """Return the newest one, which stands for all."""
        return self.failures[0]

    @property
    def first_ms(self) -> int:
        """Return when it was seen first."""
        return min(failure.stop_ms or failure.start_ms for failure in self.failures)

    @property
    def last_ms(self) -> int:
        """Return when it was seen last."""
        return max(failure.stop_ms or failure.start_ms for failure in self.failures)

    @property
    def started(self) -> tuple[int, int]:
        """Return when the first and the last of them started."""
        return self.failures[-1].start_ms, self.failures[0].start_ms


def list_failures(project: Project, numbers: Sequence[int]) -> list[Failure]:
    """Return how these executions failed, newest first, in a few queries."""
    rows = Execution.objects.filter(pk__in=numbers).order_by("-start_ms", "-pk")
    fields = (
        "pk",
        "start_ms",
        "stop_ms",
        "state_machine_arn",
        "state_machine_id",
        "error",
        "cause",
        "name",
    )
    states = failed_states(numbers)
    masks = masked_execution.masks_of(project, numbers)
    return [
        Failure(
            number,
            start,
            stop,
            arn,
            machine,
            states.get(number, ""),
            masks[number].words(error or ""),
            normalized_text(cause and masks[number].payload(cause)),
            name,
        )
        for number, start, stop, arn, machine, error, cause, name in rows.values_list(*fields)
    ]


def group_failures(failures: Iterable[Failure]) -> list[FailureGroup]:
    """Put what is the same together, the most frequent first."""
    kinds: dict[str, list[Failure]] = {}
    for failure in failures:
        kinds.setdefault(failure.key, []).append(failure)
    return sorted(
        (FailureGroup(tuple(every)) for every in kinds.values()),
        key=lambda group: (-len(group.failures), -group.last_ms),
    )
