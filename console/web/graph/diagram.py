"""Types of a layout: the input (``Diagram``) and its result (``Drawn``), with opaque ids only."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from console.web.graph.shapes import Point


class Direction(StrEnum):
    """The direction of a graph; the values are used in cookies and URLs."""

    DOWN = "down"
    """Top to bottom."""
    RIGHT = "right"
    """Left to right."""


@dataclass(frozen=True, slots=True)
class Rectangle:
    """A box; pixels."""

    id: str
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Arrow:
    """An edge between two rectangles. ``label_width``: pixels, 0 without a label."""

    id: str
    source: str
    target: str
    label_width: float = 0
    headless: bool = False


@dataclass(frozen=True, slots=True)
class Diagram:
    """One group of a graph; the first rectangle is its start. ``tight``: with small gaps."""

    parts: tuple[Rectangle | Arrow, ...]
    direction: Direction = Direction.DOWN
    tight: bool = False


@dataclass(frozen=True, slots=True)
class Curve:
    """An edge's path as SVG path data. ``label_at``: the middle of its label."""

    id: str
    path: str
    label_at: Point | None = None


@dataclass(frozen=True, slots=True)
class Drawn:
    """A laid-out diagram; pixels, downwards. ``spots``: the middle of each rectangle."""

    width: float
    height: float
    spots: Mapping[str, Point]
    curves: tuple[Curve, ...]
