"""Find the names that an expression reads at its top level, such as ``total`` in ``total + 1``.

The service has no value there (its input is ``$states.input``) and rejects such expressions. Only
the first step of a path reads the top level. Later steps, predicates, sort terms and groupings read
the value of the step before. The body of a function reads what its definition reads [measured].
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

_PARTS = ("lhs", "rhs", "condition", "then", "_else", "expression", "procedure", "body")
_LISTS = ("expressions", "arguments")
ROOT = "$$"


def top_level_names(tree: Any) -> list[str]:
    """Return the names in order of occurrence, each once; ``$`` is the top level itself."""
    return list(dict.fromkeys(_names(tree)))


def mentions_root(tree: Any) -> bool:
    """Return whether an expression contains ``$$``."""
    stack, seen = [tree], set()
    while stack:
        node = stack.pop()
        if isinstance(node, list | tuple):
            stack.extend(node)
            continue
        if not hasattr(node, "type") or id(node) in seen:
            continue
        seen.add(id(node))
        if node.type == "variable" and node.value == "$":
            return True
        stack.extend(value for name, value in vars(node).items() if name != "_outer_instance")
    return False


def _names(node: Any) -> Iterator[str]:
    """Yield the names that a part reads at the top level."""
    if node is None or not hasattr(node, "type"):
        return
    if node.type == "path":
        yield from _names(node.steps[0])
    elif node.type == "name":
        yield str(node.value)
    elif node.type == "variable":
        if node.value == "":
            yield "$"
    elif node.type != "transform":
        yield from _inner_names(node)


def _inner_names(node: Any) -> Iterator[str]:
    for part in _PARTS:
        if part == "lhs" and node.type == "bind":
            continue
        yield from _names(getattr(node, part, None))
    for part in _LISTS:
        if part == "arguments" and node.type == "lambda":
            continue
        for item in getattr(node, part, None) or ():
            yield from _names(item)
    if node.type == "unary":
        for pair in getattr(node, "lhs_object", None) or ():
            for item in pair:
                yield from _names(item)
