"""Read failures of executions; failures of one kind have a state, error and cause in common."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import engine
from console import arns
from console.masking import masked_execution
from console.models import Execution
from console.statuses import ExecutionStatus
from console.store.executions.last_states import failed_states
from console.store.executions.start import EXPRESS_S
from console.web.core.formatting import SECOND, normalized_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from console.masking.mask import Mask
    from console.models import Project


STATUSES: tuple[str, ...] = (ExecutionStatus.FAILED, ExecutionStatus.TIMED_OUT)


@dataclass(frozen=True, slots=True)
class Failure:
    """The failure of one execution. ``cause``: without numbers, ids and times.

    ``machine``: the state machine's number, None if it was deleted; ``name``: the execution's name;
    ``ending``: how the execution ended, if it has no error; ``is_express``: so that the page does
    not offer to redrive it.
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
    ending: str = ""
    is_express: bool = False

    @property
    def ended_by(self) -> str:
        """Return the error, or the kind of end without the exceeded limit."""
        return self.error or self.ending.partition(": ")[0] or "No error name"

    @property
    def heading(self) -> str:
        """Return the state with its error, or with the kind of end."""
        if self.error:
            return f"{self.state_text}: {self.error}" if self.state_text else self.error
        where = f"at {self.state}" if self.state else "before the first state"
        return f"{self.ended_by} {where}"

    @property
    def machine_name(self) -> str:
        """Return the state machine's name in URLs: ``machine~label`` of a Map Run child."""
        return self.machine_arn.rpartition(":")[2].replace("/", "~")

    @property
    def owner_arn(self) -> str:
        """Return the state machine's ARN; for a Map Run child its parent's."""
        return self.machine_arn.partition("/")[0]

    @property
    def is_child(self) -> bool:
        """Whether the execution is a Map Run child: its state machine's ARN ends in a label."""
        return "/" in self.machine_arn

    @property
    def state_text(self) -> str:
        """Return the state, "" if its name equals the error."""
        if self.error and self.state == self.error:
            return ""
        return self.state or "Before the first state"

    @property
    def cause_text(self) -> str:
        """Return the cause without the leading error name, or the exceeded limit."""
        limit = "" if self.error else self.ending.partition(": ")[2]
        if limit and not self.cause:
            return f"limit: {limit}"
        return self.cause.removeprefix(f"{self.error}: ")

    @property
    def key(self) -> str:
        """Return the key of the kind of failure: 16 hexadecimal digits."""
        whose = f"{self.owner_arn}/" if self.is_child else self.owner_arn
        parts = (whose, self.state, self.error or self.ending, self.cause)
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def list_failures(project: Project, numbers: Sequence[int]) -> list[Failure]:
    """Return the failures of executions, newest first, in a few queries."""
    rows = Execution.objects.filter(pk__in=numbers).order_by("-start_ms", "-pk")
    states = failed_states(numbers)
    masks = masked_execution.masks_of(project, numbers)
    return [
        _failure(row, masks[row.pk], states.get(row.pk, ""))
        for row in rows.values_list(*_FIELDS, named=True)
    ]


_FIELDS = (
    *("pk", "name", "arn", "status", "state_machine_arn", "state_machine_id"),
    *("start_ms", "stop_ms", "redrive_ms", "error", "cause"),
)


def _failure(row: Any, mask: Mask, state: str) -> Failure:
    since = row.redrive_ms or row.start_ms
    took_ms = (row.stop_ms or since) - since
    return Failure(
        number=row.pk,
        start_ms=row.start_ms,
        stop_ms=row.stop_ms,
        machine_arn=row.state_machine_arn,
        machine=row.state_machine_id,
        state=state,
        error=mask.words(row.error or ""),
        cause=normalized_text(row.cause and mask.payload(row.cause)),
        name=row.name,
        ending="" if row.error else ending_without_error(row.status, row.arn, took_ms),
        is_express=arns.is_express(row.arn),
    )


def ending_without_error(status: str, arn: str, took_ms: int) -> str:
    """Describe the end of an execution without an error; "" if running or succeeded.

    ``arn``: the execution's ARN; ``took_ms``: the time since its start or its last redrive.
    """
    match ExecutionStatus(status):
        case ExecutionStatus.TIMED_OUT:
            return f"Timed out: {_limit(arn, took_ms)}"
        case ExecutionStatus.ABORTED:
            return "Stopped, no error given"
        case ExecutionStatus.FAILED:
            return "No error name"
        case _:
            return ""


def _limit(arn: str, took_ms: int) -> str:
    """Return the exceeded time limit; a timeout ends an execution exactly when due."""
    if arns.is_express(arn):
        return "5 minutes of Express" if took_ms >= EXPRESS_S * SECOND else "TimeoutSeconds"
    return "one year" if took_ms >= engine.MAX_EXECUTION_S * SECOND else "TimeoutSeconds"
