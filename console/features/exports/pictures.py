"""Export an execution's graph as a standalone SVG with colours and caption.

The SVG needs no style sheet or font; the page's script converts it to PNG.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from django.template.loader import render_to_string

from console.web.core import formatting
from console.web.execution import iterations, steps
from console.web.execution.chosen_step import ended_in
from console.web.execution.graph_part import taken_ways
from console.web.graph import svg
from console.web.graph.graph_view import WHOLE
from console.web.graph.shapes import text_width_px
from console.web.history.traces import open_trace_at

if TYPE_CHECKING:
    from console.models import Execution, StateMachine
    from console.web.graph.graph_view import GraphView
    from console.web.graph.shapes import Picture

_NO_XML = re.compile("[\ufffe\uffff]")
_HEAD = 40  # pixels: what the caption takes
_SIZE = 13  # pixels
_LINE = 20  # pixels: what a notice takes
TONES = {
    "succeeded": ("#187a34", "#e6f4ea"),
    "failed": ("#c62f1c", "#fdecea"),
    "running": ("#0a66c2", "#e3f0fc"),
    "caught": ("#b35c00", "#fdf0dd"),
    "aborted": ("#5f6b7a", "#edf0f3"),
}
"""Tone -> colour of line and words, and of the ground: the colours of the light theme."""


@dataclass(frozen=True, slots=True)
class PictureFrame:
    """The picture with its caption, in pixels; the picture's own corner is 0, 0."""

    left: float
    top: float
    width: float
    height: float
    caption: str = ""
    notices: tuple[tuple[float, str], ...] = ()
    """Baseline and text of each line below the picture."""

    @property
    def middle(self) -> float:
        """Return the x of the centred caption."""
        return self.left + self.width / 2


def picture_frame(picture: Picture, caption: str = "") -> PictureFrame:
    """Return the frame of a picture, wide enough for its caption and notices."""
    texts = (caption, *picture.notices)
    width = max(
        picture.width, *(text_width_px(text, _SIZE, bold=True) + 32 for text in texts if text), 0
    )
    head = _HEAD if caption else 0
    notices = tuple(
        (picture.height + _LINE * place, text) for place, text in enumerate(picture.notices, 1)
    )
    height = picture.height + head + (_LINE * len(notices) + _LINE / 2 if notices else 0)
    return PictureFrame((picture.width - width) / 2, -head, width, height, caption, notices)


def machine_picture(machine: StateMachine, view: GraphView = WHOLE) -> str:
    """Return a machine's graph as SVG; raise ``engine.DefinitionError``."""
    view = replace(view, plain=True)
    picture = svg.definition_picture(machine.definition.text, machine.type, view)
    return _svg_text({"title": machine.name, "picture": picture, "frame": picture_frame(picture)})


def execution_picture(execution: Execution, at: int = 0, view: GraphView = WHOLE) -> str:
    """Return an execution's graph as SVG, coloured; raise ``engine.DefinitionError``.

    ``at``: the event after which the picture shows the execution, 0 for now.
    """
    picture = svg.definition_picture(execution.definition.text, view=view)
    with open_trace_at(execution, at) as trace:
        maps = None if at else iterations.map_runs_of_execution(execution, trace)
        context = {
            "picture": picture,
            "summaries": steps.step_summaries(trace, maps=maps),
            "taken": taken_ways(trace, maps),
        }
        failed_at = ended_in(execution, trace).name
    caption = (
        execution_title(execution, failed_at)
        if not at
        else f"{execution_title(execution, '')} · at event {at}"
    )
    return _svg_text(
        {**context, "tones": TONES, "title": caption, "frame": picture_frame(picture, caption)}
    )


def outline_text(execution: Execution) -> str:
    """Return an execution as text: one line per state, in definition order.

    No payload and no cause is in it; raise ``engine.DefinitionError``.
    """
    with open_trace_at(execution, 0) as trace:
        maps = iterations.map_runs_of_execution(execution, trace)
        summaries = steps.step_summaries(trace, maps=maps).values()
        lines = [execution_title(execution, ended_in(execution, trace).name), ""]
    if execution.error:
        lines[1:1] = [f"Error: {formatting.visible_text(execution.error)}"]
    rows = [
        (_outline_label(each), each.status.word, each.node.type, each.note) for each in summaries
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for row in rows:
        cells = (text.ljust(width) for text, width in zip(row, widths, strict=False))
        lines.append("  ".join((*cells, row[3])).rstrip())
    return "\n".join(lines) + "\n"


def _outline_label(summary: steps.StepSummary) -> str:
    """Return a state's name, indented by its depth."""
    return "  " * summary.depth + formatting.visible_text(summary.node.name).replace("\n", " ")


def execution_title(execution: Execution, failed_at: str) -> str:
    """Return a one-line title with name and status."""
    machine = execution.state_machine_arn.rpartition(":")[2]
    status = formatting.EXECUTION[execution.status].word
    where = f" at {failed_at}" if failed_at else ""
    when = formatting.clock_text(
        execution.stop_ms if execution.stop_ms is not None else execution.start_ms
    )
    since = "" if execution.stop_ms is not None else "since "
    return f"{machine} · {execution.name} · {status}{where} · {since}{when} UTC"


def _svg_text(context: dict[str, Any]) -> str:
    return _NO_XML.sub("\ufffd", render_to_string("exports/graph.svg", context))
