"""Answer Tasks from a mock configuration of Step Functions Local, instead of calling anything.

``MockConfigFile.json`` in the data folder (or ``SFN_MOCK_CONFIG``) is used as it is,
and read again when it changes. An execution
that is started with ``stateMachineArn#TestCase`` gets the responses of its test case in the states
that this names; the Tasks of all other states are called as usual. Source: "Using mocked service
integrations for testing" of the Step Functions Local documentation.
"""

from __future__ import annotations

from typing import Any

from django.conf import settings

import engine
from console.integrations.outcome import Failed, Succeeded


def test_cases(machine: str) -> list[str]:
    """Return the test cases of a state machine, by name."""
    return sorted(_cases(machine))


def mocked_outcome(
    machine: str, case: str, state: str, invocation: int
) -> Succeeded | Failed | None:
    """Return the outcome of a mocked state's Task; None if the test case does not mock the state.

    ``invocation``: how often the Task was called before in this execution. A response that the
    configuration lacks fails the Task with ``States.Runtime``.
    """
    cases = _cases(machine)
    if case not in cases:  # it was there when the execution began: nothing real is called instead
        return Failed("States.Runtime", f"The mock configuration has no test case '{case}' now.")
    response_name = cases[case].get(state)
    if response_name is None:
        return None
    responses = settings.STATEYARD_MOCKS.get("MockedResponses", {}).get(response_name)
    if not isinstance(responses, dict):
        cause = f"The mocked response '{response_name}' is not in the configuration."
        return Failed("States.Runtime", cause)
    for key, response in responses.items():
        first, _, last = key.partition("-")
        if _between(first, last or first, invocation):
            return _outcome(response_name, response)
    cause = f"The mocked response '{response_name}' has no answer for invocation {invocation}."
    return Failed("States.Runtime", cause)


def is_mocked(machine: str, case: str, state: str) -> bool:
    """Tell whether a test case answers in the place of a state's Task."""
    cases = _cases(machine)
    return case not in cases or state in cases[case]


def mentions_state(state: str) -> bool:
    """Tell whether a test case of any state machine has answers for a state of this name."""
    machines = settings.STATEYARD_MOCKS.get("StateMachines", {}).values()
    return any(
        state in case for machine in machines for case in machine.get("TestCases", {}).values()
    )


def _cases(machine: str) -> dict[str, dict[str, str]]:
    """Return test case -> state -> name of its response."""
    machines = settings.STATEYARD_MOCKS.get("StateMachines", {})
    cases: dict[str, dict[str, str]] = machines.get(machine, {}).get("TestCases", {})
    return cases


def _between(first: str, last: str, number: int) -> bool:
    """Tell whether a number is in a range, which the configuration writes as ``0`` or ``1-3``."""
    return first.isdecimal() and last.isdecimal() and int(first) <= number <= int(last)


def _outcome(response_name: str, response: Any) -> Succeeded | Failed:
    if isinstance(response, dict) and "Return" in response:
        return Succeeded(engine.dumps(response["Return"]))
    if isinstance(response, dict) and isinstance(response.get("Throw"), dict):
        thrown = response["Throw"]
        return Failed(thrown.get("Error"), thrown.get("Cause"))
    cause = f"The mocked response '{response_name}' has neither Return nor Throw."
    return Failed("States.Runtime", cause)
