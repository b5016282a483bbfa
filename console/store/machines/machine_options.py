"""Options of a state machine that AWS does not have, set by tags.

``stateyard:childPolicy``: the fate of child executions when their parent ends.
``stateyard:onWorkerLoss``: whether a call whose outcome was lost with its worker is repeated.
``stateyard:summary``: an expression that sums up an execution in a line, for lists.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from console.errors import ValidationException
from console.models import Execution, Tag

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

CHILD_POLICY, ON_WORKER_LOSS = "stateyard:childPolicy", "stateyard:onWorkerLoss"
SUMMARY = "stateyard:summary"
"""The option with a JSONata expression. AWS does not allow its characters in the value of a tag."""
TERMINATE, REQUEST_CANCEL, ABANDON = "terminate", "requestCancel", "abandon"
REDISPATCH, FAIL = "redispatch", "fail"
VALUES: dict[str, Sequence[str]] = {
    CHILD_POLICY: (REQUEST_CANCEL, TERMINATE, ABANDON),  # the first value is the default
    ON_WORKER_LOSS: (REDISPATCH, FAIL),
}


def check_tag(key: str, value: str) -> None:
    """Raise ValidationException for an option tag with an unknown value."""
    if key in VALUES and value not in VALUES[key]:
        allowed = ", ".join(sorted(VALUES[key]))
        raise ValidationException(f"{key} must be one of {allowed}, not {value!r}")


def of_execution(execution_id: int, key: str) -> str:
    """Return the value of option ``key`` of an execution's state machine."""
    rows = Execution.objects.filter(pk=execution_id)
    arn = rows.values_list("state_machine_arn", flat=True).first() or ""
    return of_machine(base_arn(arn))[key]


def base_arn(arn: str) -> str:
    """Return the ARN of a state machine without the ``/LABEL`` of a distributed Map."""
    return arn.partition("/")[0]


def machines_with(key: str, value: str, arns: Iterable[str]) -> set[str]:
    """Return the ARNs of the state machines whose option ``key`` is tagged with ``value``."""
    machine_arns = {base_arn(arn) for arn in arns}
    tags = Tag.objects.filter(arn__in=machine_arns, key=key, value=value)
    return set(tags.values_list("arn", flat=True))


def of_machine(arn: str) -> dict[str, str]:
    """Return option -> value of a state machine, with defaults."""
    tags = dict(Tag.objects.filter(arn=arn, key__in=VALUES).values_list("key", "value"))
    return {
        key: tags[key] if tags.get(key) in values else values[0] for key, values in VALUES.items()
    }
