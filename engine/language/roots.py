"""The check of where JSONata reads ``$states.result`` and ``$states.errorOutput``.

Source: "Transforming data with JSONata", reserved variables. The result of a Task, Parallel or Map
may be read in its own Output and Assign; an error, in those of the Catcher that took it. The
service refuses any other use when the machine is created.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.data.expression import Json
    from engine.language.node import DefinitionNode

_STRING = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""")
_ROOT = re.compile(r"\$states\.(result|errorOutput)\b")
_WITH_RESULT = ("Task", "Parallel", "Map")
_BLOCKS = ("ItemProcessor", "Iterator", "Branches")


def check_roots(node: DefinitionNode) -> None:
    """Note every wrong use in a JSONata state's own fields."""
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
    used = {match[1] for text in _expression_texts(value) for match in _ROOT.finditer(text)}
    for root in sorted(used - {allowed}):
        node.problems.error(pointer, f"The variable '$states.{root}' is not accessible here")


def _expression_texts(value: Json) -> Iterator[str]:
    """Yield the expressions in a value, texts inside them blanked."""
    stack = [value]
    while stack:
        part = stack.pop()
        if isinstance(part, dict):
            stack.extend(part.values())
        elif isinstance(part, list):
            stack.extend(part)
        elif isinstance(part, str) and part.startswith("{%"):
            yield _STRING.sub("''", part)
