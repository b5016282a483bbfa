"""The scope of an access key: the actions and state machines that the key may use.

A scope only restricts: a key never does more than the role of its owner allows. It does not
restrict an execution once it is started: Tasks have rights of their own
(``console.execution_rights``).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


class ActionSet(StrEnum):
    """The named sets of actions; each includes the ones before it."""

    READ = "read"
    START = "start"
    ALL = "all"


STARTS = frozenset({"StartExecution", "StartSyncExecution"})
"""The actions of ``ActionSet.START`` in addition to ``ActionSet.READ``."""
ANY_END = "*"
"""The wildcard at the end of a prefix of machine names."""


@dataclass(frozen=True, slots=True)
class KeyedResource:
    """The resource of an action. ``machine``: its state machine, "" without one."""

    arn: str
    machine: str = ""


UNNAMED = KeyedResource("*")
"""A resource that the request does not name."""


@dataclass(frozen=True, slots=True)
class KeyScope:
    """The actions and state machines of a key.

    ``actions``: a set by its name, None for the actions of ``listed``, as ``StartExecution`` and
    ``events:PutEvents``. ``machines``: names, or prefixes that end with ``*``; empty for all.
    """

    actions: ActionSet | None = ActionSet.ALL
    listed: frozenset[str] = frozenset()
    machines: tuple[str, ...] = ()

    @classmethod
    def of_text(cls, text: str) -> KeyScope:
        """Parse the scope of a row; an invalid one allows nothing."""
        if not text:
            return EVERYTHING
        try:
            values = json.loads(text)
            actions, machines = values.pop("actions"), tuple(map(str, values.pop("machines", ())))
            if values:  # a limit of a later version
                return NOTHING
            if isinstance(actions, str):
                return cls(ActionSet(actions), machines=machines)
            return cls(None, frozenset(map(str, actions)), machines)
        except (ValueError, TypeError, KeyError, AttributeError):
            return NOTHING

    def as_text(self) -> str:
        """Return the scope for a row, "" for everything."""
        if self == EVERYTHING:
            return ""
        actions = sorted(self.listed) if self.actions is None else self.actions.value
        machines = {"machines": list(self.machines)} if self.machines else {}
        return json.dumps({"actions": actions, **machines})

    def allows_action(self, action: str, *, is_reading: bool) -> bool:
        """Return whether an action is allowed. ``is_reading``: it changes nothing."""
        if self.actions is None:
            return action in self.listed
        if self.actions == ActionSet.ALL:
            return True
        return is_reading or (self.actions == ActionSet.START and action in STARTS)

    def outside(self, resources: Sequence[KeyedResource]) -> KeyedResource | None:
        """Return the first resource outside the scope, None if all are inside."""
        if not self.machines:
            return None
        outside = (each for each in resources if not self._includes_machine(each.machine))
        return next(outside, None if resources else UNNAMED)

    def _includes_machine(self, name: str) -> bool:
        return bool(name) and any(
            name.startswith(pattern.removesuffix(ANY_END))
            if pattern.endswith(ANY_END)
            else name == pattern
            for pattern in self.machines
        )

    def in_words(self) -> str:
        """Return the scope in words: ``read and start, state machines orders-*``."""
        words = {
            ActionSet.ALL: "all actions",
            ActionSet.READ: "read only",
            ActionSet.START: "read and start",
            None: ", ".join(sorted(self.listed)) or "no actions",
        }[self.actions]
        if not self.machines:
            return words
        plural = "" if len(self.machines) == 1 and ANY_END not in self.machines[0] else "s"
        return f"{words}, state machine{plural} {', '.join(self.machines)}"


EVERYTHING = KeyScope()
"""The scope of a key without limits: everything that the role of its owner allows."""
NOTHING = KeyScope(None)
