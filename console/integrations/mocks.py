"""Answers in place of the outside world, from a Step Functions Local mock configuration.

``MockConfigFile.json`` in the data folder (or ``SFN_MOCK_CONFIG``) is used as it is: an execution
started with ``stateMachineArn#TestCase`` gets, in the states its test case names, the responses
given there; every other state is called as usual. Source: "Using mocked service integrations for
testing" of the Step Functions Local documentation.
"""

from __future__ import annotations

from typing import Any

from django.conf import settings

import engine
from console.integrations.outcome import Failed, Outcome, Succeeded


def test_cases(machine: str) -> list[str]:
    """Return the test cases of a state machine, by name."""
    return sorted(_cases(machine))


def mocked_outcome(machine: str, case: str, state: str, invocation: int) -> Outcome | None:
    """Return what a mocked state answers the ``invocation``-th time (from 0); None if it is not."""
    named = _cases(machine).get(case, {}).get(state)
    if named is None:
        return None
    responses = settings.STEPYARD_MOCKS.get("MockedResponses", {}).get(named)
    if not isinstance(responses, dict):
        what = f"The mocked response '{named}' is not in the configuration."
        return Failed("States.Runtime", what)
    for key, response in responses.items():
        first, _, last = key.partition("-")
        if _between(first, last or first, invocation):
            return _outcome(named, response)
    what = f"The mocked response '{named}' has no answer for invocation {invocation}."
    return Failed("States.Runtime", what)


def mentions_state(state: str) -> bool:
    """Tell whether a test case of any state machine has answers for a state of this name."""
    machines = settings.STEPYARD_MOCKS.get("StateMachines", {}).values()
    return any(state in case for one in machines for case in one.get("TestCases", {}).values())


def _cases(machine: str) -> dict[str, dict[str, str]]:
    machines = settings.STEPYARD_MOCKS.get("StateMachines", {})
    found: dict[str, dict[str, str]] = machines.get(machine, {}).get("TestCases", {})
    return found


def _between(first: str, last: str, number: int) -> bool:
    return first.isdecimal() and last.isdecimal() and int(first) <= number <= int(last)


def _outcome(named: str, response: Any) -> Outcome:
    if isinstance(response, dict) and "Return" in response:
        return Succeeded(engine.dumps(response["Return"]))
    if isinstance(response, dict) and isinstance(response.get("Throw"), dict):
        thrown = response["Throw"]
        return Failed(thrown.get("Error"), thrown.get("Cause"))
    return Failed("States.Runtime", f"The mocked response '{named}' has neither Return nor Throw.")
