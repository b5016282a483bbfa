"""Write the SVG parts of a graph that are the same for every execution.

Templates are too slow here: 5 µs a coordinate, with forty coordinates in a box.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.utils.html import escape
from django.utils.safestring import SafeString

from console.web.core.formatting import visible_text
from console.web.graph.shapes import LINE

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from console.web.graph.shapes import Box, EdgeLine

_LEFT, _LEFT_PLAIN, _LEFT_COMPACT = 36, 14, 25
"""Pixels between the left edge of a box and its words."""
_BESIDE, _BESIDE_PLAIN = 44, 20
"""Pixels of its width that words do not have."""


@dataclass(frozen=True, slots=True)
class BoxParts:
    """The SVG parts of a box, in drawing order.

    ``frame``: title and rectangles. ``status_at``: position of the status icon, as attributes.
    ``opening``: icon of a compact box, and the start tag around the texts. ``words``: name and
    type. ``detail_y``: y of the status line. ``closing``: the rest.
    """

    frame: SafeString
    status_at: SafeString
    opening: SafeString
    words: SafeString
    detail_y: str
    closing: SafeString


def write_box(box: Box, *, plain: bool) -> BoxParts:
    """Return the parts of a box. ``plain``: the picture shows no status."""
    rows = box.rows
    sign_y, below = box.y + rows[0][0] - 4, rows[-1][0] + LINE - 1
    return BoxParts(
        SafeString(_write_frame(box, plain=plain)),
        SafeString(f'x="{box.x + 12:.1f}" y="{sign_y - 8:.1f}"'),
        SafeString(_write_opening(box, sign_y, plain=plain)),
        SafeString(_write_words(box, rows, below, plain=plain)),
        f"{below + LINE - 1:.1f}",
        SafeString(_write_closing(box, box.y + below - 11, plain=plain)),
    )


def _write_frame(box: Box, *, plain: bool) -> str:
    x, y, width, height = box.x, box.y, box.width, box.height
    parts = [
        f"<title>{escape(visible_text(box.about))}</title>",
        _rectangle(box, "selection-outline", -4, 11),
    ]
    if box.folded:
        parts.append(
            f'<path class="behind" d="M{x + 6:.1f},{y + height:.1f} v4 h{width - 2:.1f}'
            f' v-{height - 2:.1f} h-4"/>'
        )
    parts.append(_rectangle(box, "box", 0, 8))
    if not plain:
        parts.append(_rectangle(box, "inner-border", 3, 6))
    if box.nested:
        parts.append(f'<path class="header-line" d="M{x:.1f},{box.rule_y:.1f} h{width:.1f}"/>')
        parts.append(f'<g data-head="{x:.1f}" data-slack="{box.head_slack:.1f}">')
    return "\n".join(parts)


def _rectangle(box: Box, name: str, inset: int, radius: int) -> str:
    """Return a rectangle inside a box, or around it if ``inset`` is negative."""
    width, height = box.width - 2 * inset, box.height - 2 * inset
    return (
        f'<rect class="{name}" x="{box.x + inset:.1f}" y="{box.y + inset:.1f}"'
        f' width="{width:.1f}" height="{height:.1f}" rx="{radius}"/>'
    )


def _write_opening(box: Box, sign_y: float, *, plain: bool) -> str:
    icon = ""
    if box.compact:
        icon = _type_icon(box, f' x="{box.x + 7:.1f}" y="{sign_y - 7:.1f}"')
    inset = _LEFT_COMPACT if box.compact else _LEFT_PLAIN if plain else _LEFT
    width = box.width - (_BESIDE_PLAIN if plain else _BESIDE)
    size = f'height="{box.height:.1f}" width="{width:.1f}"'
    return f'{icon}<svg x="{box.x + inset:.1f}" y="{box.y:.1f}" {size}>'


def _write_words(box: Box, rows: Sequence[tuple[float, str]], below: float, *, plain: bool) -> str:
    parts = [
        f'<text class="title" y="{y:.1f}">{escape(visible_text(line))}</text>' for y, line in rows
    ]
    if not box.compact:
        x_attribute = ' x="20"' if plain else ""
        kind = escape(visible_text(box.kind))
        parts.append(f'<text class="node-type" y="{below:.1f}"{x_attribute}>{kind}</text>')
        if plain:
            parts.append(_type_icon(box, f' y="{below - 11:.1f}"'))
    return "".join(parts)


def _write_closing(box: Box, kind_y: float, *, plain: bool) -> str:
    parts = ["</svg>"]
    if not plain:
        parts.append(_type_icon(box, f' x="{box.x + 13:.1f}" y="{kind_y:.1f}"'))
    if box.nested:
        parts.append("</g>")
    if box.compact and box.folded:
        parts.append(
            f'<g class="visit-badge"><rect x="{box.right - 50:.1f}" y="{box.y - 9:.1f}" width="42"'
            f' height="18" rx="9"/><text x="{box.right - 29:.1f}" y="{box.y + 4:.1f}">'
            f"+{box.folded:,}</text></g>"
        )
    return "".join(parts)


def _type_icon(box: Box, place: str) -> str:
    return f'<use class="type-icon" href="#state-icon-{box.icon}"{place}></use>'


def write_lines(lines: Sequence[EdgeLine], taken_ways: Collection[str]) -> SafeString:
    """Return the lines of a picture.

    Taken lines come last, so that they are on top.
    """
    drawn: tuple[list[str], list[str]] = ([], [])
    for line in lines:
        was_taken = line.way in taken_ways
        drawn[was_taken].append(_write_line(line, taken=was_taken))
    return SafeString("\n".join(drawn[False] + drawn[True]))


def _write_line(line: EdgeLine, *, taken: bool) -> str:
    name = f"edge {line.kind}{' taken' if taken else ''}"
    key, path = escape(line.key), escape(line.path)
    way = f' data-way="{escape(line.way)}"' if line.way != line.key else ""
    tip = "" if line.kind == "out" else f' marker-end="url(#tip{"-taken" if taken else ""})"'
    return f'<path class="{name}" data-edge="{key}"{way} d="{path}"{tip}/>'
