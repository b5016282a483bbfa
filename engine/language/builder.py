"""The interface of the machine builder (``build.Builder``) for the readers of the state types.

``build`` calls the readers, and the reader of a Parallel or Map calls back to build its inner
blocks. This protocol stands between the two, so their modules do not import each other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from engine.language.model import Block
    from engine.language.node import DefinitionNode


class MachineBuilder(Protocol):
    """The builder of the whole machine, as a state's reader uses it.

    ``express``: the machine is of type EXPRESS. ``express_child``: the state that is read is of an
    Express child execution of a Map Run. ``activities``: the ARNs of the activities used so far; a
    reader adds to them.
    """

    express: bool
    express_child: bool
    activities: set[str]

    def nested(self, node: DefinitionNode, allowed: tuple[str, ...]) -> Block:
        """Build a branch or item processor, which may have the ``allowed`` fields."""

    def label(self, node: DefinitionNode) -> str | None:
        """Read the Label of a distributed Map, which must be unique in the machine."""
