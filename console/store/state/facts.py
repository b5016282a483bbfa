"""Keep in memory what of an execution never changes, for the steps that read no row."""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from typing import NamedTuple

_SIZE = 2_000
_facts: OrderedDict[int, ExecutionFacts] = OrderedDict()


class Belongs(NamedTuple):
    """To what an execution belongs, for as long as it is there: ``Execution`` has the columns."""

    map_run: int | None
    project: int
    parent: int | None
    parent_task: int | None


class ExecutionFacts(NamedTuple):
    """What never changes. ``machine_arn``: of the state machine itself, without a label."""

    arn: str
    definition: str
    machine_arn: str
    belongs: Belongs


def find_facts(execution_id: int) -> ExecutionFacts | None:
    """Return the facts of an execution, if they are kept."""
    return _facts.get(execution_id)


def keep_facts(execution_id: int, facts: ExecutionFacts) -> ExecutionFacts:
    """Keep the facts of an execution in place of the oldest, and return them."""
    _facts[execution_id] = facts
    while len(_facts) > _SIZE:
        with contextlib.suppress(KeyError):  # another thread was first
            _facts.popitem(last=False)
    return facts
