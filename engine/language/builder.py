"""What the readers of the state types may ask of the builder of the machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from engine.language.model import Block
    from engine.language.node import DefinitionNode


class MachineBuilder(Protocol):
    """The builder of the whole machine, as a reader of one state sees it.

    ``express``: the machine is of type EXPRESS. ``activities``: the ARNs of the activities used so
    far; a reader adds to them.
    """

    express: bool
    activities: set[str]

    def nested(self, node: DefinitionNode, known: tuple[str, ...]) -> Block:
        """Build a branch or item processor, which may have the ``known`` fields."""

    def label(self, node: DefinitionNode) -> str | None:
        """Read the Label of a distributed Map, which must be unique in the machine."""
