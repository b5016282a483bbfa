"""An expression yields what JSONata's own suite says, alone and through TestState.

The suite is JSONata's ``test/test-suite`` folder; ``STATEYARD_JSONATA_SUITE`` says where one lies.
It belongs to no package, so this is collected only where somebody has it.

A state machine has no value at its top level. A case with data is therefore asked as
``$states.input{'r': ...}``, which evaluates the expression with the data around it.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError
from jsonata.jexception import JException

from engine.data import jsonata_eval, jsonata_service
from engine.data.jsonata import mentions_root, top_level_names
from tests.acceptance.server import Server

if TYPE_CHECKING:
    from collections.abc import Iterator

SUITE = Path(os.environ["STATEYARD_JSONATA_SUITE"])
VALUE, UNDEFINED, ERROR = jsonata_eval.VALUE, jsonata_eval.UNDEFINED, jsonata_eval.ERROR

# What the service answers otherwise than the suite. A case that passes fails until it is gone here.
_MEMORY = "more than 873,782 numbers: the service's limit of memory"
_DEPTH = "evaluations more than 100 deep: the service's limit, an error without a code"
RESTS = {
    "range-operator/case021": _MEMORY,
    "range-operator/case024": _MEMORY,
    "tail-recursion/case001": _DEPTH,
    "tail-recursion/case002": _DEPTH,
    "tail-recursion/case005": _DEPTH,
    "tail-recursion/case006": "the service's limit of time is an error without a code",
}
# What cannot be asked through a state machine at all.
_NO_EVAL = "the service has no $eval"
_NO_ROOT = "the service refuses $$, and $ at the top level"
_NO_ARRAY = "JSONata treats an array at the top level alone as one value"


def suite() -> Iterator[dict[str, Any]]:
    """Yield the suite's cases: name, text, data, bindings, and the kind and value wanted."""
    for file in sorted(SUITE.glob("groups/*/*.json")):
        cases = json.loads(file.read_text(encoding="utf-8"))
        for number, case in enumerate(cases if isinstance(cases, list) else [cases]):
            index = f"[{number}]" if isinstance(cases, list) else ""
            yield {**_read(case, file.parent), "name": f"{file.parent.name}/{file.stem}{index}"}


def _read(case: dict[str, Any], folder: Path) -> dict[str, Any]:
    text = case.get("expr") or (folder / case["expr-file"]).read_text(encoding="utf-8")
    read = {"text": text, "bindings": case.get("bindings") or {}}
    if case.get("dataset"):
        file = SUITE / "datasets" / f"{case['dataset']}.json"
        read["data"] = json.loads(file.read_text(encoding="utf-8"))
    elif "data" in case:
        read["data"] = case["data"]
    if "result" in case:
        return {**read, "kind": VALUE, "wanted": case["result"]}
    code = case.get("code") or case.get("error", {}).get("code")
    return {**read, "kind": ERROR if code else UNDEFINED, "wanted": code}


CASES = list(suite())


def unaskable(case: dict[str, Any]) -> str:
    """Return why a case cannot be asked of the service, "" if it can."""
    if case["name"].startswith("function-eval/"):
        return _NO_EVAL
    if isinstance(case.get("data"), list):
        return _NO_ARRAY
    try:
        tree = jsonata_eval.compiled(case["text"]).ast
    except JException:
        return ""
    reads_nothing = "data" not in case and "$" in top_level_names(tree)
    return _NO_ROOT if reads_nothing or mentions_root(tree) else ""


def same(actual: Any, expected: Any) -> bool:
    """Compare values; numbers to 13 digits, as sums of doubles differ by their order."""
    if isinstance(actual, bool) or isinstance(expected, bool):
        return actual is expected
    if isinstance(actual, int | float) and isinstance(expected, int | float):
        return math.isclose(actual, expected, rel_tol=1e-13)
    if isinstance(actual, list) and isinstance(expected, list):
        return len(actual) == len(expected) and all(map(same, actual, expected))
    if isinstance(actual, dict) and isinstance(expected, dict):
        return actual.keys() == expected.keys() and all(
            same(actual[k], expected[k]) for k in actual
        )
    return type(actual) is type(expected) and bool(actual == expected)


def as_wanted(case: dict[str, Any], kind: str, value: Any) -> bool:
    """Return whether an answer is the suite's: the value, nothing, or the code of the error."""
    if kind != case["kind"]:
        return False
    if kind == ERROR:
        return str(case["wanted"]) in str(value)
    return kind == UNDEFINED or same(value, case["wanted"])


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_the_evaluator_alone(case: dict[str, Any]) -> None:
    """The value, nothing, or the code that the suite wants, or the named rest."""
    root = jsonata_service.json_value(case["data"]) if "data" in case else None
    try:
        expression = jsonata_eval.compiled(case["text"])
    except JException as error:
        kind, value = ERROR, str(error.error)
    else:
        kind, value = jsonata_eval.evaluate(expression, case["bindings"], 0, root)
    different = case["name"] in RESTS or unaskable(case) == _NO_EVAL
    assert as_wanted(case, kind, value) is not different


@pytest.mark.acceptance
def test_end_to_end_through_test_state(tmp_path: Path) -> None:
    """Ask every case of a running server; of values 99.5 % are right, of error codes 97 %."""
    server = Server(tmp_path / "data")
    server.start()
    try:
        client = server.client()
        asked = [case for case in CASES if not unaskable(case)]
        failed = {case["name"] for case in asked if not as_wanted(case, *_tried(client, case))}
    finally:
        server.stop()
    assert failed == set(RESTS)
    total = Counter(case["kind"] for case in asked)
    wrong = Counter(case["kind"] for case in asked if case["name"] in failed)
    assert total[VALUE] > 1100
    assert wrong[VALUE] / total[VALUE] <= 0.005
    assert wrong[ERROR] / total[ERROR] <= 0.03


def _tried(client: Any, case: dict[str, Any]) -> tuple[str, Any]:
    """Return what TestState yields for a case: its kind, and its value or the error's text."""
    text = re.sub("[\ud800-\udfff]", lambda match: f"\\u{ord(match[0]):04x}", case["text"])
    if str(case["wanted"]).startswith("S0"):
        return _asked(client, case, text)  # a syntax error must not meet the syntax around it
    bare = f"{{'r': ({text}\n)}}"
    if "data" not in case:
        kind, value = _asked(client, case, bare)
        if "at the top level" not in str(value):
            return kind, value
    return _asked(client, case, f"$states.input{bare}")


def _asked(client: Any, case: dict[str, Any], expression: str) -> tuple[str, Any]:
    """Ask TestState for a Pass state whose output an expression makes."""
    output = f"{{% {expression} %}}"
    state = {"Type": "Pass", "QueryLanguage": "JSONata", "Output": output, "End": True}
    try:
        answer = client.test_state(
            definition=json.dumps(state),
            input=json.dumps(case.get("data", {})),
            variables=json.dumps(case["bindings"]),
        )
    except ClientError as error:
        return ERROR, error.response["Error"]["Message"]
    if answer["status"] != "SUCCEEDED":
        return ERROR, answer["cause"]
    value = json.loads(answer["output"])
    return (VALUE, value["r"]) if "r" in value else (UNDEFINED, None)
