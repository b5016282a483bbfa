"""Render chart axes as SVG and HTML, once for all charts of a page.

An axis has no text of a user, so nothing is escaped.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.utils.safestring import SafeString

from console.features.metrics.web.scale import HEIGHT, WIDTH
from console.web.core import formatting

if TYPE_CHECKING:
    from collections.abc import Sequence

    from console.features.metrics.web.scale import TimeTick, ValueTick

_PARTS = {"hour": slice(11, 16), "day": slice(5, 10), "both": slice(5, 16)}
"""Form of a tick -> the part of a moment's text that it names; the page's script has the same."""
_BASE_LINE = (
    f'<line class="axis" x1="0" y1="{HEIGHT - 0.5:g}" x2="{WIDTH:g}" y2="{HEIGHT - 0.5:g}"></line>'
)


@dataclass(frozen=True, slots=True)
class WrittenAxis:
    """A rendered axis. ``texts``: labels below or next to a chart; ``lines``: its grid."""

    texts: SafeString
    lines: SafeString


def write_time_axis(ticks: Sequence[TimeTick]) -> WrittenAxis:
    """Render the time axis, with the base line of the columns."""
    texts = "".join(_time_text(tick) for tick in ticks if tick.form)
    lines = "".join(_grid_line((tick.x, 0), (tick.x, HEIGHT)) for tick in ticks)
    return WrittenAxis(
        SafeString(f'<svg class="time-ticks" aria-hidden="true">{texts}</svg>'),
        SafeString(f"{lines}\n{_BASE_LINE}"),
    )


def _time_text(tick: TimeTick) -> str:
    name = "end" if tick.is_end else tick.room
    style = f' class="{name}"' if name else ""
    shown = formatting.clock_text(tick.at_ms)[_PARTS[tick.form]]
    return (
        f'<text x="{tick.left}" y="12"{style}>'
        f'<tspan data-ms="{tick.at_ms}" data-axis="{tick.form}">{shown}</tspan></text>'
    )


def write_value_axis(ticks: Sequence[ValueTick]) -> WrittenAxis:
    """Render the value axis, with its end and its middle."""
    middle = ' class="middle"'
    texts = "".join(f"<span{middle if tick.top else ''}>{tick.text}</span>" for tick in ticks)
    return WrittenAxis(
        SafeString(f'<div class="value-ticks" aria-hidden="true">{texts}</div>'),
        SafeString("".join(_grid_line((0, tick.y), (WIDTH, tick.y)) for tick in ticks)),
    )


def _grid_line(begin: tuple[float, float], end: tuple[float, float]) -> str:
    (x1, y1), (x2, y2) = begin, end
    return (
        f'<line class="grid-line" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"></line>'
    )
