"""Extract the ItemProcessor of a distributed Map as a definition for its child executions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import jsontext
from engine.language.model import MachineType

if TYPE_CHECKING:
    from collections.abc import Sequence


def processor_definition(text: str, path: Sequence[tuple[str, int]]) -> str:
    """Return the ItemProcessor at ``path`` as a definition of its own.

    ``path``: state name and branch index of each Parallel or Map around it, the Map itself last.
    """
    definition = jsontext.loads(text)
    block = _block_at(definition, path)
    own = {key: value for key, value in block.items() if key != "ProcessorConfig"}
    if "QueryLanguage" in definition:
        own.setdefault("QueryLanguage", definition["QueryLanguage"])
    return jsontext.dumps(own)


def is_express_processor(text: str, path: Sequence[tuple[str, int]]) -> bool:
    """Return whether the child executions of an ItemProcessor are Express ones."""
    config = _block_at(jsontext.loads(text), path).get("ProcessorConfig") or {}
    return bool(config.get("ExecutionType") == MachineType.EXPRESS)


def _block_at(definition: dict[str, Any], path: Sequence[tuple[str, int]]) -> dict[str, Any]:
    """Return the block with the states at ``path``."""
    block = definition
    for name, branch in path:
        state = block["States"][name]
        if "Branches" in state:
            block = state["Branches"][branch]
        else:
            block = state.get("ItemProcessor") or state["Iterator"]
    return block
