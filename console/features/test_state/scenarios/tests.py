"""Write a scenario as a pytest file, as TestState inputs, or as a mock configuration."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import engine

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_BY_CHANCE = ("output", "input")
"""Beginnings of places in which runs of the same definition may differ."""
_ROLE = "arn:aws:iam::123456789012:role/test"
_PYTEST = '''"""Test of the execution {name} of {machine}, made by Stateyard from its recording."""

{imports}import engine

{definition}SCENARIO = r\'\'\'
{scenario}
\'\'\'


def test_{function}():
    """The recorded answers lead to the recorded states, calls and end."""
    differences = engine.replay(SCENARIO{argument})
    assert not differences, "\\n".join(map(str, differences))
'''


class UnstableError(ValueError):
    """The replay of a scenario differs from its recording; the text says where."""


class NoCallError(ValueError):
    """The execution has no call for a test that has only calls; the text names another kind."""


def write_pytest(scenario: Mapping[str, Any], definition: str = "") -> str:
    """Return a pytest file that needs only Stateyard.

    ``definition``: the path of the definition to test, relative to the file; "" for the recorded
    one. Values that vary between runs, such as a UUID, are not compared. Raise ``UnstableError``.
    """
    (machine,) = scenario["StateMachines"]
    (name,) = scenario["StateMachines"][machine]["TestCases"]
    recorded = {key: scenario[key] for key in ("MockedResponses", "Scenario")}
    text = json.dumps(_without_chance(recorded), indent=1, ensure_ascii=True)
    path = f"DEFINITION = Path(__file__).parent / {definition!r}\n"
    return _PYTEST.format(
        name=_word(name),
        machine=_word(machine),
        function=re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_").lower() or "execution",
        # Quotes occur in texts only, where their escape has the same meaning.
        scenario=text.replace("'", "\\u0027"),
        imports="from pathlib import Path\n\n" if definition else "",
        definition=path if definition else "",
        argument=', DEFINITION.read_text(encoding="utf-8")' if definition else "",
    )


def write_mocks(scenario: Mapping[str, Any], _definition: str = "") -> str:
    """Return a mock configuration in the form of ``MockConfigFile.json``; raise ``NoCallError``."""
    _check_calls(scenario["MockedResponses"], "mock-config")
    parts = {key: scenario[key] for key in ("StateMachines", "MockedResponses")}
    return _as_json(parts)


def write_test_state(scenario: Mapping[str, Any], _definition: str = "") -> str:
    """Return inputs for ``aws stepfunctions test-state --cli-input-json``, with expected answers.

    A list of objects with ``name``, ``cliInput`` and ``expected``: the status, with output and next
    state, or error and cause, if present. Raise ``NoCallError``.
    """
    _check_calls(scenario["TestState"], "test-state")
    definition = json.dumps(scenario["Scenario"]["Definition"])
    counts: dict[str, int] = {}
    suite = []
    for request in scenario["TestState"]:
        name = request["stateName"]
        counts[name] = counts.get(name, 0) + 1
        cli_input = {"definition": definition, "roleArn": _ROLE, **request}
        suite.append(
            {
                "name": f"{name} {counts[name]}",
                "cliInput": cli_input,
                "expected": _expected(definition, request),
            }
        )
    return _as_json(suite)


def _check_calls(calls: Any, kind: str) -> None:
    """Raise ``NoCallError`` for a test that would have nothing to do."""
    if not calls:
        raise NoCallError(f"got an execution without a call for {kind}, wanted the kind pytest")


WRITERS: Mapping[str, Callable[[Mapping[str, Any], str], str]] = {
    "pytest": write_pytest,
    "test-state": write_test_state,
    "mock-config": write_mocks,
}
"""Kind of a test -> the function that writes it."""


def _without_chance(recorded: dict[str, Any]) -> dict[str, Any]:
    """Return a scenario that replays with its own definition without differences.

    Paths of varying outputs are ignored; if inputs of calls vary, none is compared.
    """
    scenario = json.loads(json.dumps(recorded))
    parts = scenario["Scenario"]
    ignored = parts["Expected"]["Ignore"]
    while differences := engine.replay(json.dumps(scenario)):
        places = [each.where for each in differences]
        outputs = [place.removeprefix("output ") for place in places if place[:7] == "output "]
        calls = any(place.startswith("input of ") for place in places)
        lasting = [each for each in differences if each.where.split(" ")[0] not in _BY_CHANCE]
        if lasting or not (outputs or calls):
            raise UnstableError("; ".join(map(str, lasting or differences)))
        ignored += outputs
        if calls:
            for task in parts["Tasks"]:
                task.pop("Input", None)
    return dict(scenario)


def _expected(definition: str, request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answer of TestState, from a run of the state in memory."""
    machine, name = engine.parse_state(definition, request["stateName"])
    mock, error = request["mock"], request["mock"].get("errorOutput", {})
    context = request.get("context")
    trial = engine.try_state(
        machine,
        name,
        request["input"],
        engine.Moment(0),
        about={"context": json.loads(context), "input": "{}"} if context else {},
        mock=engine.Mock(mock.get("result"), error.get("error"), error.get("cause")),
        retries=request.get("stateConfiguration", {}).get("retrierRetryCount", 0),
        variables=request.get("variables", ""),
    )
    answer = {
        "status": str(trial.status),
        "output": trial.output,
        "error": trial.error,
        "cause": trial.cause,
        "nextState": trial.next_state,
    }
    return {key: value for key, value in answer.items() if value is not None}


def _word(name: str) -> str:
    """Return a name for a docstring, with safe characters only."""
    return re.sub(r"[^\w .:/-]", "_", name, flags=re.ASCII)


def _as_json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
