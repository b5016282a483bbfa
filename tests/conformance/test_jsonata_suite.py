"""The evaluator passes what the library passes of JSONata's own suite.

The suite is JSONata's ``test/test-suite`` folder; ``STEPYARD_JSONATA_SUITE`` says where one lies.
It belongs to no package, so this is collected only where somebody has it.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from engine.data import jsonata_eval
from tests.engine.data.test_jsonata_table import library, same

SUITE = Path(os.environ["STEPYARD_JSONATA_SUITE"])


class _Rooted:
    """An expression with data at its root, as the suite has it; ASL gives none."""

    def __init__(self, text: str, data: Any) -> None:
        self._expression = jsonata_eval.compiled(text)
        self._data = data

    def __getattr__(self, name: str) -> Any:
        return getattr(self._expression, name)

    def evaluate(self, _: Any, bindings: dict[str, Any]) -> Any:
        return self._expression.evaluate(self._data, bindings)


def suite() -> list[Any]:
    """Return the cases of JSONata's suite as parameters."""
    found = []
    for file in sorted(SUITE.glob("groups/*/*.json")):
        cases = json.loads(file.read_text(encoding="utf-8"))
        for number, case in enumerate(cases if isinstance(cases, list) else [cases]):
            name = f"{file.parent.name}/{file.stem}[{number}]"
            found.append(pytest.param({**case, "folder": file.parent}, id=name))
    return found


@pytest.mark.parametrize("case", suite())
def test_the_suite_of_jsonata(case: dict[str, Any]) -> None:
    """What the library passes, our evaluator passes; ``$eval`` alone is refused."""
    text = case.get("expr") or (case["folder"] / case["expr-file"]).read_text(encoding="utf-8")
    data = case.get("data")
    if case.get("dataset"):
        file = SUITE / "datasets" / f"{case['dataset']}.json"
        data = json.loads(file.read_text(encoding="utf-8"))
    bindings = case.get("bindings", {})
    theirs = library(text, data, bindings)
    wanted = (jsonata_eval.VALUE, case["result"]) if "result" in case else None
    as_wanted = theirs[0] == jsonata_eval.ERROR if wanted is None else theirs == wanted
    unpassed = not as_wanted and ("code" in case or "error" in case or wanted is not None)
    if "$eval" in text or unpassed:
        pytest.skip("the library itself does not pass it, or it calls $eval")
    try:
        rooted: Any = _Rooted(text, data)
    except Exception:  # noqa: BLE001 - a syntax error is the library's own
        assert theirs[0] == jsonata_eval.ERROR
        return
    assert same(jsonata_eval.evaluate(rooted, bindings, 0, 0), theirs)
