"""Find the variables that each state uses, for ``variableReferences`` of DescribeStateMachine."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from engine import jsontext
from engine.data.jsonata import is_jsonata

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.data.expression import Json

_QUOTED = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""")
_PATH_VARIABLE = re.compile(r"(?<![\w$])\$([^\W\d]\w*)")
_JSONATA_VARIABLE = re.compile(r"\$([^\W\d]\w*)\b(?!\s*\()")
_JSONATA_LOCAL = re.compile(r"\$([^\W\d]\w*)\s*:=|function\s*\(([^)]*)\)")
_NESTED = ("ItemProcessor", "Iterator", "Branches")


def variable_references(text: str) -> dict[str, list[str]]:
    """Return state name -> sorted names of its variables; states without any are left out.

    ``text``: a definition that was accepted. A state inside of a branch or processor has an entry
    of its own; it does not count for the state around it.
    """
    references: dict[str, list[str]] = {}
    blocks: list[Any] = [jsontext.loads(text)]
    while blocks:
        for name, state in blocks.pop()["States"].items():
            names = sorted(
                {
                    variable
                    for value, path in _own_texts(state)
                    for variable in _variable_names(value, path)
                }
            )
            if names:
                references[name] = names
            blocks += [state[key] for key in _NESTED[:2] if key in state]
            blocks += state.get("Branches", [])
    return references


def _own_texts(state: Json) -> Iterator[tuple[str, bool]]:
    """Yield the texts of a state's own fields, and whether each is in the place of a path."""
    stack: list[tuple[Json, bool]] = [
        (value, _takes_path(key)) for key, value in state.items() if key not in _NESTED
    ]
    while stack:
        value, path = stack.pop()
        if isinstance(value, dict):
            stack.extend((inner, _takes_path(key)) for key, inner in value.items())
        elif isinstance(value, list):
            stack.extend((inner, path) for inner in value)
        elif isinstance(value, str):
            yield value, path


def _takes_path(key: str) -> bool:
    return key.endswith((".$", "Path")) or key == "Variable"


def _variable_names(text: str, path: bool) -> set[str]:
    if is_jsonata(text):
        bare = _QUOTED.sub("''", text)
        local: set[str] = set()
        for match in _JSONATA_LOCAL.finditer(bare):
            local |= {match[1]} if match[1] else set(re.findall(r"\$(\w+)", match[2]))
        return set(_JSONATA_VARIABLE.findall(bare)) - local - {"states"}
    return set(_PATH_VARIABLE.findall(_QUOTED.sub("''", text))) if path else set()
