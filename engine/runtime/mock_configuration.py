"""Load mocked task results for ``engine.run`` from a mock configuration of Step Functions Local.

Source: "Using mocked service integrations for testing" of the Step Functions Local documentation.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engine.errors import StatesError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def mocked_tasks(
    configuration: Mapping[str, Any], state_machine: str, test_case: str
) -> dict[str, Callable[[Any], Any]]:
    """Return functions that answer as a test case says, by state, for ``run(tasks=...)``.

    ``configuration``: the content of ``MockConfigFile.json``. Each function counts its calls, so
    the tasks are for one run. Raise KeyError for a missing machine, test case or response.
    """
    machine = _member(configuration.get("StateMachines", {}), state_machine, "StateMachines")
    case = _member(machine.get("TestCases", {}), test_case, f"TestCases of {state_machine}")
    responses = configuration.get("MockedResponses", {})
    return {
        state: _MockedTask(name, _member(responses, name, "MockedResponses"))
        for state, name in case.items()
    }


def _member(members: Mapping[str, Any], name: str, where: str) -> Any:
    if name not in members:
        raise KeyError(f"{where}: got {name!r}, wanted one of {sorted(members)}")
    return members[name]


@dataclass
class _MockedTask:
    """Answers each invocation in turn: ``"0"`` the first, ``"1-3"`` the next three."""

    name: str
    responses: Mapping[str, Any]
    invocation: int = 0

    def __call__(self, _input: Any) -> Any:
        number, self.invocation = self.invocation, self.invocation + 1
        for key, response in self.responses.items():
            first, _, last = key.partition("-")
            if int(first) <= number <= int(last or first):
                return self._answer(response)
        cause = f"The mocked response '{self.name}' has no answer for invocation {number}."
        raise StatesError("States.Runtime", cause)

    def _answer(self, response: Mapping[str, Any]) -> Any:
        if "Return" in response:
            return copy.deepcopy(response["Return"])
        thrown = response.get("Throw")
        if not isinstance(thrown, dict):
            cause = f"The mocked response '{self.name}' has neither Return nor Throw."
            raise StatesError("States.Runtime", cause)
        raise StatesError(thrown.get("Error"), thrown.get("Cause"))
