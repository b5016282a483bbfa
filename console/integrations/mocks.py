"""Answer Tasks from a mock configuration of Step Functions Local, without calling a service.

The file is ``MockConfigFile.json`` in the folder in ``STATEYARD_CONFIG`` (default: the data
folder), or the file in ``SFN_MOCK_CONFIG``. It is read again when it changes. An execution
started with ``stateMachineArn#TestCase`` gets mocked responses in the states that its test case
lists; the Tasks of other states are called as usual. Source: "Using mocked service integrations for
testing" of the Step Functions Local documentation.

Owners save a mock configuration of their project on a page. A state machine of the file has the
test cases of the file only, in every project.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.conf import settings

import engine
from console.db import project_settings
from console.integrations.outcome import Failed, Succeeded

if TYPE_CHECKING:
    from collections.abc import Mapping

    from console.integrations.targets import MachineKey

KIND = "mocks"
"""The kind of the owners' setting: a mock configuration, without a name."""


def are_in_use() -> bool:
    """Return whether there is a mock configuration, of the server or of a project."""
    return bool(settings.STATEYARD_MOCKS) or bool(project_settings.names_in_use(KIND))


def test_cases(machine: MachineKey) -> list[str]:
    """Return the names of a state machine's test cases, sorted."""
    return sorted(_cases(_configuration(machine), machine.name))


def mocked_outcome(
    machine: MachineKey, case: str, state: str, invocation: int
) -> Succeeded | Failed | None:
    """Return the outcome of a mocked state's Task; None if the test case does not mock the state.

    ``invocation``: the number of earlier calls of the Task in this execution. If the configuration
    has no response for it, the Task fails with ``States.Runtime``.
    """
    configuration = _configuration(machine)
    cases = _cases(configuration, machine.name)
    if case not in cases:  # removed since the start: do not call the real service
        return Failed("States.Runtime", f"The mock configuration has no test case '{case}' now.")
    response_name = cases[case].get(state)
    if response_name is None:
        return None
    responses = configuration.get("MockedResponses", {}).get(response_name)
    if not isinstance(responses, dict):
        cause = f"The mocked response '{response_name}' is not in the configuration."
        return Failed("States.Runtime", cause)
    for key, response in responses.items():
        first, _, last = key.partition("-")
        if _between(first, last or first, invocation):
            return _outcome(response_name, response)
    cause = f"The mocked response '{response_name}' has no answer for invocation {invocation}."
    return Failed("States.Runtime", cause)


def is_mocked(machine: MachineKey, case: str, state: str) -> bool:
    """Return whether a test case mocks a state, or no longer exists (then the Task fails)."""
    cases = _cases(_configuration(machine), machine.name)
    return case not in cases or state in cases[case]


def mentions_state(state: str) -> bool:
    """Return whether any test case of any state machine mocks a state of this name."""
    return state in _states_of(settings.STATEYARD_MOCKS)


def mentions_own_state(state: str) -> bool:
    """Return whether a test case that owners have saved mocks a state of this name."""
    values = project_settings.settings_in_use(KIND).values
    if not values:
        return False
    if _own_states[0] is not values:
        mocked = (_states_of(configuration) for _, configuration in values)
        _own_states[:] = [values, frozenset().union(*mocked)]
    return state in _own_states[1]


_own_states: list[Any] = [(), frozenset()]
"""The configurations of all projects, and the names of the states in them."""


def _states_of(configuration: Mapping[str, Any]) -> set[str]:
    machines = configuration.get("StateMachines", {}).values()
    cases = (case for machine in machines for case in machine.get("TestCases", {}).values())
    return {state for case in cases for state in case}


def _configuration(machine: MachineKey) -> Mapping[str, Any]:
    """Return the mock configuration that counts for a state machine."""
    of_server: Mapping[str, Any] = settings.STATEYARD_MOCKS
    if machine.name in of_server.get("StateMachines", {}):
        return of_server
    if not project_settings.names_in_use(KIND):
        return {}
    return project_settings.read_value(machine.project, KIND) or {}


def _cases(configuration: Mapping[str, Any], machine: str) -> dict[str, dict[str, str]]:
    """Return test case -> state -> name of the mocked response."""
    machines = configuration.get("StateMachines", {})
    cases: dict[str, dict[str, str]] = machines.get(machine, {}).get("TestCases", {})
    return cases


def _between(first: str, last: str, number: int) -> bool:
    """Return whether a number is in a range; the configuration has ``0`` or ``1-3``."""
    return first.isdecimal() and last.isdecimal() and int(first) <= number <= int(last)


def _outcome(response_name: str, response: Any) -> Succeeded | Failed:
    if isinstance(response, dict) and "Return" in response:
        return Succeeded(engine.dumps(response["Return"]))
    if isinstance(response, dict) and isinstance(response.get("Throw"), dict):
        thrown = response["Throw"]
        return Failed(thrown.get("Error"), thrown.get("Cause"))
    cause = f"The mocked response '{response_name}' has neither Return nor Throw."
    return Failed("States.Runtime", cause)
