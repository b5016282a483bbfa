"""The definition of the child executions of a distributed Map."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import jsontext

if TYPE_CHECKING:
    from collections.abc import Sequence


def processor_definition(text: str, path: Sequence[tuple[str, int]]) -> str:
    """Return the ItemProcessor at ``path`` as a definition of its own.

    ``path``: state name and branch index of each Parallel or Map around it, the Map itself last.
    """
    whole = jsontext.loads(text)
    block: dict[str, Any] = whole
    for name, branch in path:
        state = block["States"][name]
        if "Branches" in state:
            block = state["Branches"][branch]
        else:
            block = state.get("ItemProcessor") or state["Iterator"]
    own = {key: value for key, value in block.items() if key != "ProcessorConfig"}
    if "QueryLanguage" in whole:
        own.setdefault("QueryLanguage", whole["QueryLanguage"])
    return jsontext.dumps(own)
