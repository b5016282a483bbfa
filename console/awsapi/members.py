"""Declare the request members that a handler reads, and refuse every other member.

A handler names its members with ``reads``, right above the code that reads them::

    @reads("logGroupName startFromHead=true tags.key tags.value")
    def create(call: Call) -> ...

``startFromHead=true``: only this value is accepted, because the server behaves so in any case.
Undeclared members are refused, also future ones that botocore's model does not know yet: AWS would
act on them, and this server would silently ignore them.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    Tree = dict[str, "Tree | Only"]

Handler = TypeVar("Handler", bound="Callable[..., Any]")


class Only:
    """The only accepted value of a member."""

    def __init__(self, text: str) -> None:
        """Read the value from its JSON text."""
        self.text = text
        self.value = json.loads(text)


_TREES: dict[Callable[..., Any], Tree] = {}
_IGNORED: dict[Callable[..., Any], Mapping[str, str]] = {}


def reads(members: str, ignored: Mapping[str, str] | None = None) -> Callable[[Handler], Handler]:
    """Declare the members that a handler reads, separated by blanks.

    ``ignored``: member -> why it changes nothing here, whatever its value.
    """
    tree: Tree = {}
    for member in (*members.split(), *(ignored or {})):
        path, equals, only = member.partition("=")
        *above, name = path.split(".")
        branch = tree
        for part in above:
            inner = branch.setdefault(part, {})
            assert isinstance(inner, dict), path  # noqa: S101 - a slip in a declaration
            branch = inner
        branch[name] = Only(only) if equals else {}

    def declare(handler: Handler) -> Handler:
        _TREES[handler] = tree
        _IGNORED[handler] = ignored or {}
        return handler

    return declare


def declared_members(handler: Callable[..., Any]) -> Tree:
    """Return the declared members of a handler, each with its nested members."""
    return _TREES[handler]


def refusals(handler: Callable[..., Any], params: Mapping[str, Any]) -> list[str]:
    """Return a message for each unsupported member of a request; empty if all are supported."""
    return list(_refusals(declared_members(handler), params, ""))


def _refusals(tree: Tree, value: Any, path: str) -> Iterator[str]:
    if isinstance(value, list):
        for number, item in enumerate(value, 1):
            yield from _refusals(tree, item, f"{path}{number}.member.")
    elif isinstance(value, dict):
        for name, inner in value.items():
            if inner is not None:
                yield from _member_refusals(tree.get(name), inner, f"{path}{name}")


def _member_refusals(served: Tree | Only | None, value: Any, path: str) -> Iterator[str]:
    if isinstance(served, Only):
        if value != served.value:
            got = json.dumps(value)[:100]
            yield f"the member '{path}' is served as {served.text} only: got {got}"
    elif served:
        yield from _refusals(served, value, f"{path}.")
    elif served is None and value not in ("", [], {}):  # an empty one says nothing
        yield f"the member '{path[:200]}' is not served by this server"
