"""Which machine behaves otherwise than AWS has it?  Tags of the machine say so.

``stepyard:childPolicy``: what becomes of the executions it has started when one of its own ends.
``stepyard:onWorkerLoss``: whether a call is made again whose outcome nobody knows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import connection

from console.errors import ValidationException
from console.models import Tag

if TYPE_CHECKING:
    from collections.abc import Sequence

CHILD_POLICY, ON_WORKER_LOSS = "stepyard:childPolicy", "stepyard:onWorkerLoss"
TERMINATE, REQUEST_CANCEL, ABANDON = "terminate", "requestCancel", "abandon"
REDISPATCH, FAIL = "redispatch", "fail"
_VALUES: dict[str, Sequence[str]] = {
    CHILD_POLICY: (REQUEST_CANCEL, TERMINATE, ABANDON),  # the first is what happens without a tag
    ON_WORKER_LOSS: (REDISPATCH, FAIL),
}
_OF = (
    "SELECT t.value FROM console_execution e JOIN console_statemachine m"
    " ON m.id = e.state_machine_id JOIN console_tag t ON t.arn = m.arn"
    " WHERE e.id = %s AND t.key = %s"
)


def check_tag(key: str, value: str) -> None:
    """Raise ValidationException for a switch with a value it does not have."""
    if key in _VALUES and value not in _VALUES[key]:
        wanted = ", ".join(sorted(_VALUES[key]))
        raise ValidationException(f"{key}: got {value!r}, wanted one of {wanted}")


def of_execution(execution_id: int, key: str) -> str:
    """Return how a switch of an execution's machine stands."""
    with connection.cursor() as cursor:
        cursor.execute(_OF, [execution_id, key])
        found = cursor.fetchone()
    return found[0] if found and found[0] in _VALUES[key] else _VALUES[key][0]


def of_machine(arn: str) -> dict[str, str]:
    """Return switch -> how it stands, for a machine."""
    said = dict(Tag.objects.filter(arn=arn, key__in=_VALUES).values_list("key", "value"))
    return {
        key: said[key] if said.get(key) in values else values[0] for key, values in _VALUES.items()
    }
