"""Check where JSONata uses ``$states.result`` and ``$states.errorOutput``.

Source: "Transforming data with JSONata", reserved variables. Output and Assign of a Task, Parallel
or Map may read the result; only expressions of a Catcher may read the error. The service rejects
any other use when the machine is created.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from engine.language.diagnostics import DiagnosticCode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.data.expression import Json
    from engine.language.node import DefinitionNode

_STRING = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""")
_ROOT = re.compile(r"\$states\.(result|errorOutput)\b")
_WITH_RESULT = ("Task", "Parallel", "Map")
_BLOCKS = ("ItemProcessor", "Iterator", "Branches")


def check_roots(node: DefinitionNode) -> None:
    """Report every wrong use in a JSONata state's own fields."""
    for name, value in node.value.items():
        if name in _BLOCKS:
            continue
        if name == "Catch" and isinstance(value, list):
            _check_catchers(node, value)
            continue
        after = name in ("Output", "Assign") and node.get("Type") in _WITH_RESULT
        _check_value(node, node.at(name), value, "result" if after else "")


def _check_catchers(node: DefinitionNode, catchers: list[Json]) -> None:
    for index, catcher in enumerate(catchers):
        for name, value in catcher.items() if isinstance(catcher, dict) else ():
            allowed = "errorOutput" if name in ("Output", "Assign") else ""
            _check_value(node, f"{node.at('Catch')}[{index}]/{name}", value, allowed)


def _check_value(node: DefinitionNode, pointer: str, value: Json, allowed: str) -> None:
    for place, text in _expressions(pointer, value):
        for root in sorted({match[1] for match in _ROOT.finditer(text)} - {allowed}):
            message = f"Field '$states.{root}' does not exist."
            node.problems.error(place, message, DiagnosticCode.UNSUPPORTED_JSONATA)


def _expressions(pointer: str, value: Json) -> Iterator[tuple[str, str]]:
    """Yield the pointer and text of each expression in a value, with string literals blanked."""
    stack = [(pointer, value)]
    while stack:
        place, part = stack.pop()
        if isinstance(part, dict):
            stack.extend((f"{place}/{key}", inner) for key, inner in part.items())
        elif isinstance(part, list):
            stack.extend((f"{place}[{index}]", inner) for index, inner in enumerate(part))
        elif isinstance(part, str) and part.startswith("{%"):
            yield place, _STRING.sub("''", part)
