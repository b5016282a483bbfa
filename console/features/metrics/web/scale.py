"""Choose the end of an axis, and the values and times it labels."""

from __future__ import annotations

from dataclasses import dataclass

from console.web.core import formatting
from console.web.core.formatting import DAY, HOUR, MINUTE, SECOND

WIDTH, HEIGHT = 600.0, 100.0
"""The size of the drawing of a chart, in its own units: the page stretches it."""
_HALVES = (1, 2, 4, 6, 8, 10, 20, 30, 40, 60, 80)
_TIMES = (
    *(step * unit for unit in (1, 10, 100) for step in (1, 2, 4)),
    *(step * SECOND for step in (1, 2, 4, 10, 20, 30)),
    *(step * MINUTE for step in (1, 2, 4, 10, 20, 30)),
    *(step * HOUR for step in (1, 2, 4, 6, 12)),
)
_STEPS = (
    *(step * MINUTE for step in (1, 2, 5, 10, 15, 30)),
    *(step * HOUR for step in (1, 2, 3, 4, 6, 12)),
    *(step * DAY for step in (1, 2, 5, 10, 30, 90)),
)
_SHORT, _LONG = 36, 70
"""The width of a label on a time axis, in pixels: an hour or a day, and both."""
_GAP = 10
_PLOTS = (("", 240), ("medium", 384), ("wide", 584), ("wider", 944))
"""The minimum width of a plot in pixels: the styles know the names of the wider ones."""


@dataclass(frozen=True, slots=True)
class ValueTick:
    """A grid line. ``top``: percent from above; ``y``: in drawing units."""

    top: float
    y: float
    text: str


@dataclass(frozen=True, slots=True)
class TimeTick:
    """A tick of the time axis. ``x``: in drawing units; ``form``: its label, "" for none.

    ``room``: the minimum width of a plot that shows the label, "" if every plot does.
    """

    at_ms: int
    x: float
    form: str
    room: str = ""

    @property
    def left(self) -> str:
        """Return the position in percent."""
        return f"{100 * self.x / WIDTH:.2f}%"

    @property
    def is_end(self) -> bool:
        """Whether it is at the end of the axis: its label is then on the left."""
        return self.x >= WIDTH


def axis_end(most: float, *, times: bool) -> float:
    """Return a round number at or above the maximum, whose half is round, too."""
    if times:
        ends: tuple[float, ...] = _TIMES
        days = -(-most // DAY) * DAY
        return next((end for end in ends if end >= most), days)
    unit = 1.0
    while _HALVES[-1] * unit < most:
        unit *= 10
    return next(end * unit for end in _HALVES if end * unit >= most)


def value_ticks(end: float, *, times: bool) -> list[ValueTick]:
    """Return the lines at the end and the middle of a value axis."""
    is_small = end < 2  # noqa: PLR2004 - half an execution is none, half a millisecond is not shown
    shares = (1.0,) if is_small else (1.0, 0.5)
    return [
        ValueTick(100 * (1 - share), HEIGHT * (1 - share), _tick_text(end * share, times=times))
        for share in shares
    ]


def _tick_text(value: float, *, times: bool) -> str:
    return formatting.rough_duration(round(value)) if times else value_text(value, times=False)


def value_text(value: float, *, times: bool) -> str:
    """Format a value of an axis or chart."""
    if times:
        return formatting.duration_text(round(value))
    return f"{value:,.0f}" if value == int(value) else f"{value:,.1f}"


def time_ticks(since: int, until: int, period: int) -> list[TimeTick]:
    """Return a few round times of a period, and its end.

    A plot that is too narrow for all labels labels every second or fourth time, at even distances.
    A time near the end has a grid line but no label, because the labels would overlap.
    """
    span = until - since
    form = "hour" if span < DAY else "day" if period >= DAY else "both"
    label_width = _LONG if form == "both" else _SHORT
    step = _time_step(span, period, 4 if form == "both" else 6)
    ticks = []
    for place, at_ms in enumerate(range(-(-since // step) * step, until, step)):
        remainder = (until - at_ms) / span
        rooms = [
            room
            for room, pixels in _PLOTS
            if remainder * pixels >= 2 * label_width + _GAP
            and place % _named_of(step * pixels / span, label_width) == 0
        ]
        x = WIDTH * (at_ms - since) / span
        ticks.append(TimeTick(at_ms, x, form if rooms else "", rooms[0] if rooms else ""))
    return [*ticks, TimeTick(until, WIDTH, form)]


def _named_of(apart: float, label_width: int) -> int:
    """Return n: every n-th tick gets a label.

    A power of two: what a narrow plot names, a wider one names, too.
    """
    every = 1
    while every * apart < label_width + _GAP:
        every *= 2
    return every


def _time_step(span: int, period: int, most: int) -> int:
    """Return the smallest round step with at most this many ticks."""
    least = max(-(-span // most), period)
    return next((step for step in _STEPS if step >= least), -(-least // DAY) * DAY)
