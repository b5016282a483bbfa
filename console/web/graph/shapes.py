"""Shapes of a graph's picture, such as ``Box``, and the sizes their texts need.

Sizes are pixels. A graph keeps the states nearest to its start, as many as can be drawn.
"""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass, replace
from functools import lru_cache
from math import ceil
from typing import TYPE_CHECKING
from unicodedata import combining, east_asian_width

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from engine import Graph, Node, StateGroup


Point = tuple[float, float]

# Pixels: line of text, padding, head of a group without lines below its name, way from it to its
# first state and from its last ones to where they meet, gap of branches.
LINE, PAD, HEAD, ENTRY, EXIT, GAP = 17, 16, 33, 26, 14, 20
MIN_WIDTH, MAX_NAME, MAX_DETAIL = 220, 270, 292
"""``MIN_WIDTH``: "In progress · 23 h 59 min" has room in a box. ``MAX_DETAIL``: so has the longest
callback, "Task · states: startExecution.waitForTaskToken"."""
NAME_SIZE, DETAIL_SIZE = 13, 12
SIGNS = 52
"""The width next to the words: the sign on their left, and padding."""
STATUS_ROOM = MIN_WIDTH - 44
"""The width of the status line in the smallest box; the template cuts longer texts."""
MAP_ROOM = STATUS_ROOM + 2 * PAD
"""The same in the head of a Parallel or Map, which surrounds other boxes."""
CLOCK = " · 59 min 59 s"
"""The text that a script adds to the line of a state in progress."""
FOLD_ROOM = 44
"""Beside the words in the head of a Parallel or Map: the sign that folds it."""
BADGE_SIZE, BADGE_RIGHT, BADGE_LEAST, BADGE_PAD = 11.5, 8, 42, 16
"""The badge of visits and retries: its text, its way to the right edge, its width."""
COMPACT_NAME, COMPACT_SIGNS = 86, 33
"""The width of the name in a compact box, and the width next to it."""
MOST_OF_DETAIL = 500
"""The number of characters of a state's call in its title."""
LABEL_WORDS, LABEL_HEIGHT = 30, 18


@dataclass(frozen=True, slots=True)
class Box:
    """A state's rectangle; ``lines``: its wrapped name; ``nested``: it contains boxes.

    ``folded``: how many states are inside that are not drawn. ``plain``: no line for its status.
    ``compact``: none for its type either.
    """

    node: Node
    x: float
    y: float
    width: float
    height: float
    lines: tuple[str, ...]
    nested: bool = False
    folded: int = 0
    plain: bool = False
    compact: bool = False

    @property
    def rows(self) -> list[tuple[float, str]]:
        """Return (baseline, text) of each line of the name, from the top of the box."""
        top = 22 if self.nested else self._middle()
        return [(top + LINE * place, line) for place, line in enumerate(self.lines)]

    def _middle(self) -> float:
        below = lines_below(plain=self.plain, compact=self.compact)
        return (self.height - LINE * (len(self.lines) + below)) / 2 + 13

    @property
    def below(self) -> float:
        """Return the baseline of the type's line under the name, from the top of the box."""
        return self.rows[-1][0] + LINE - 1

    @property
    def last(self) -> float:
        """Return the baseline of the status line, from the top of the box."""
        return self.below + LINE - 1

    @property
    def kind(self) -> str:
        """Return the type of the state, and its target: ``Task · lambda: ShipItem``."""
        words = " ".join(self.node.detail.split())
        if self.folded and self.plain:
            words = f"{self.folded:,} states inside"
        text = f"{self.node.type} · {words}" if words else self.node.type
        return fit_text(text, self.width - SIGNS, DETAIL_SIZE)

    @property
    def about(self) -> str:
        """Return name, type and call; of a folded box also the number of states inside."""
        inside = f"{self.folded:,} states inside" if self.compact and self.folded else ""
        detail = self.node.detail
        if len(detail) > MOST_OF_DETAIL:
            detail = f"{detail[: MOST_OF_DETAIL - 1]}…"
        return " · ".join(part for part in (self.node.name, self.node.type, inside, detail) if part)

    @property
    def icon(self) -> str:
        """Return the icon name of its type, or of the called service."""
        return state_icon(self.node.type, self.node.detail)

    @property
    def right(self) -> float:
        """Return the right edge."""
        return self.x + self.width

    @property
    def bottom(self) -> float:
        """Return the lower edge."""
        return self.y + self.height

    @property
    def head_width(self) -> float:
        """Return the width of the texts in a Parallel's or Map's head."""
        return min(text_width(self.node, compact=self.compact), self.width)

    @property
    def fold_x(self) -> float:
        """Return the x of the fold sign, beside the texts and a badge."""
        return self.x + self.head_width + 8 if self.nested else self.right - 126

    @property
    def head_slack(self) -> float:
        """Return how far the texts and fold sign in a head may move to stay in sight."""
        return max(0.0, self.width - self.head_width - FOLD_ROOM)

    @property
    def rule_y(self) -> float:
        """Return the y of the line under the head of a Parallel or Map."""
        return self.y + head_height(len(self.lines), plain=self.plain, compact=self.compact)

    @property
    def sign_y(self) -> float:
        """Return the y of the middle of the fold sign."""
        return self.y + self.rows[0][0] - 4


@dataclass(frozen=True, slots=True)
class EdgeLine:
    """A transition's curve. ``path``: SVG path data; ``at``: place of the label.

    ``thread``: into which branch it leads or out of which, "" for one between states.
    """

    source: str
    target: str
    kind: str
    path: str
    label: str = ""
    full_label: str = ""
    at: Point | None = None
    thread: str = ""

    @property
    def key(self) -> str:
        """Return the key of the line for the editor."""
        return f"{self.source}-{self.target}"

    @property
    def way(self) -> str:
        """Return the key by which taken lines are found: a thread's branch, else both ends.

        A Catcher may lead where ``Next`` leads, too, but not for the same visit. Of the rules of a
        Choice that lead to one state, the history does not tell which one decided.
        """
        return self.thread or way_between(self.source, self.target, caught=self.kind == "catch")

    @property
    def plate(self) -> tuple[float, float, float, float]:
        """Return x, y, width and height of the label's background."""
        x, y = self.at or (0, 0)
        width = label_width(self.label)
        return x - width / 2, y - LABEL_HEIGHT / 2, width, LABEL_HEIGHT


@dataclass(frozen=True, slots=True)
class Picture:
    """Everything to draw; boxes of groups precede their contents.

    ``notices``: notes on states that are not drawn, or drawn differently.
    """

    width: float
    height: float
    boxes: tuple[Box, ...]
    lines: tuple[EdgeLine, ...]
    start: Point | None = None
    end: Point | None = None
    notices: tuple[str, ...] = ()

    @property
    def icons(self) -> list[str]:
        """Return the distinct icon names."""
        return sorted({box.icon for box in self.boxes})

    @property
    def weight(self) -> int:
        """Return the number of drawn things."""
        return len(self.boxes) + len(self.lines)


def way_between(source: str, target: str, *, caught: bool = False) -> str:
    """Return the key of a line between two states. ``caught``: the line is a Catcher's."""
    return f"{source}-{target}{'-caught' * caught}"


def badge_place(text: str) -> tuple[int, int, int]:
    """Return begin and middle of a badge, from its box's right edge, and its width."""
    words = ceil(text_width_px(text, BADGE_SIZE, bold=True)) if text else 0
    width = max(BADGE_LEAST, words + BADGE_PAD)
    return -BADGE_RIGHT - width, -BADGE_RIGHT - width // 2, width


def lines_below(*, plain: bool, compact: bool = False) -> int:
    """Return the number of lines below the name: type, and status unless it is plain."""
    return 0 if compact else 1 if plain else 2


def head_height(lines: int, *, plain: bool, compact: bool = False) -> int:
    """Return the height of a Parallel's or Map's head. ``lines``: the lines of its name."""
    return HEAD + LINE * (lines - 1 + lines_below(plain=plain, compact=compact))


def name_lines(node: Node, *, compact: bool = False) -> list[str]:
    """Return a state's name wrapped for its box."""
    return wrap_text(node.name, COMPACT_NAME if compact else MAX_NAME)


def text_width(node: Node, *, compact: bool = False) -> float:
    """Return the width of a state's box for its texts: the name is never cut."""
    if compact:
        lines = name_lines(node, compact=True)
        return max(text_width_px(line, NAME_SIZE, bold=True) for line in lines) + COMPACT_SIGNS
    name = max(text_width_px(line, NAME_SIZE, bold=True) for line in wrap_text(node.name))
    detail = text_width_px(f"{node.type} · {node.detail}" if node.detail else "", DETAIL_SIZE)
    return max(MIN_WIDTH, name + SIGNS, min(detail, MAX_DETAIL) + SIGNS)


def fit_text(text: str, room: float, size: float) -> str:
    """Shorten a text to a width in pixels."""
    if text_width_px(text, size) <= room:
        return text
    while text and text_width_px(f"{text}…", size) > room:
        text = text[:-1]
    return f"{text.rstrip()}…"


def fitting_line(parts: Sequence[str], room: float = STATUS_ROOM) -> str:
    """Join the first parts that fit into a line."""
    for count in range(len(parts), 1, -1):
        line = " · ".join(parts[:count])
        if text_width_px(line, DETAIL_SIZE, bold=True) <= room:
            return line
    return parts[0]


def wrap_text(name: str, most: float = MAX_NAME) -> list[str]:
    """Break a name into lines at blanks, in a long word before a capital or anywhere.

    Nothing is left out. ``most``: pixels of a line with more than one word.
    """
    lines = [""]
    for word in _words(name) or [name]:
        if lines[-1] and text_width_px(lines[-1] + word.rstrip(), NAME_SIZE, bold=True) > most:
            lines.append("")
        lines[-1] += word
    return [line.rstrip() or " " for line in lines]


_LONG_WORD = 30
_INNER_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[_.:/-])(?=\w)")
"""The beginnings of words in a long name without blanks: ``CheckStock``, ``check_stock``."""


def _words(name: str) -> list[str]:
    """Return the parts of a name between which a line may break, with trailing blanks."""
    pieces: list[str] = []
    for word in re.findall(r"\S+\s*", name):
        inner = _INNER_WORD.split(word) if len(word.rstrip()) > _LONG_WORD else [word]
        pieces += [cut for part in inner for cut in re.findall(r"\S{1,30}\s*", part)]
    return pieces


_TYPES = {
    "Task": "square-function",
    "Choice": "split",
    "Wait": "timer",
    "Map": "layers",
    "Parallel": "columns-3",
    "Pass": "arrow-right",
    "Succeed": "circle-check",
    "Fail": "circle-x",
}
_SERVICES = {
    "lambda": "square-function",
    "activity": "user",
    "dynamodb": "database",
    "sqs": "inbox",
    "sns": "megaphone",
    "events": "radio",
    "states": "workflow",
    "ecs": "container",
    "batch": "cpu",
    "s3": "archive",
    "http": "globe",
}
"""Service -> the icon of its purpose; other services have the icon of the state type."""


def state_icon(kind: str, detail: str) -> str:
    """Return the name of a state's icon."""
    service = re.split(r"\W", detail, maxsplit=1)[0].lower() if kind == "Task" else ""
    return _SERVICES.get(service, _TYPES.get(kind, "square"))


def cut_text(label: str) -> str:
    """Shorten the label of a transition; its tooltip has the whole text."""
    return label if len(label) <= LABEL_WORDS else label[: LABEL_WORDS - 1] + "…"


def label_width(label: str) -> float:
    """Return the width of the background of a label."""
    return text_width_px(label, DETAIL_SIZE) + 10


_FIRST = 0x20
_REGULAR_TEXT = """
318 401 460 838 637 951 780 275 391 391 500 838 318 361 318 337 637 637 637 637 637
637 637 637 637 637 337 337 838 838 838 557 1016 685 687 723 771 667 611 778 752 295
500 667 558 863 749 788 667 788 723 667 611 732 685 989 686 667 686 391 337 391 838
557 500 613 635 550 635 616 353 635 634 278 278 580 278 975 634 612 635 635 412 521
393 634 592 818 592 592 525 637 337 637 838
"""
_BOLD_TEXT = """
349 457 521 838 696 1002 873 307 458 458 523 838 380 416 380 366 696 696 696 696 696
696 696 696 696 696 400 400 838 838 838 611 1000 774 763 734 831 684 684 821 837 373
557 775 638 996 837 851 733 851 771 721 683 813 774 1104 771 725 726 458 366 458 838
557 500 675 716 593 716 679 436 716 712 343 343 666 343 1042 712 688 716 716 494 596
479 712 652 924 646 652 583 712 366 712 838
"""
_REGULAR = tuple(map(int, _REGULAR_TEXT.split()))
_BOLD = tuple(map(int, _BOLD_TEXT.split()))
_WIDE, _OTHER = 1250, 900
"""The widths of a character of East Asia or a picture, and of other characters beyond ASCII."""


def text_width_px(text: str, size: float, *, bold: bool = False) -> float:
    """Return the maximum width in pixels of a text at a font size."""
    return _thousandths(text, bold=bold) * size / 1000


@lru_cache(maxsize=20_000)
def _thousandths(text: str, *, bold: bool) -> int:
    widths = _BOLD if bold else _REGULAR
    total = 0
    for char in text:
        place = ord(char) - _FIRST
        if 0 <= place < len(widths):
            total += widths[place]
        elif not combining(char):
            total += _WIDE if east_asian_width(char) in "WF" else _OTHER
    return total


MOST_STATES = 1000
PART = 500
"""The number of drawn states of a graph with more than ``MOST_STATES``."""
MOST_ARROWS = 2000
"""Graphviz is not asked for more, and no more are drawn in plain layers.

(2,000 arrows between layers of 20 states took it a second; a page with them has a megabyte.)
"""


def bound_graph(graph: Graph) -> Graph:
    """Return the part of a graph to draw: the states nearest to the start.

    A state inside a Parallel or Map is as near as the state that holds it.
    """
    if len(graph.nodes) <= MOST_STATES:
        return graph
    nearest = _nearest(graph)
    kept_nodes = {node for node, _ in zip(nearest, range(PART), strict=False)}
    nodes = tuple(node for node in graph.nodes if node.id in kept_nodes)
    return replace(
        graph,
        nodes=nodes,
        edges=tuple(
            edge for edge in graph.edges if edge.source in kept_nodes and edge.target in kept_nodes
        ),
        groups=tuple(group for group in graph.groups if group.start in kept_nodes),
        by_name={node.name: node.id for node in nodes},
        by_id={node.id: node for node in nodes},
    )


def _nearest(graph: Graph) -> Iterator[str]:
    """Yield the ids of all reachable states, breadth first."""
    inner: dict[str, list[StateGroup]] = {}
    for group in graph.groups:
        inner.setdefault(group.owner, []).append(group)
    targets: dict[str, list[str]] = {}
    for edge in graph.edges:
        targets.setdefault(edge.source, []).append(edge.target)
    queue = deque(group.start for group in inner.get("", ()))
    reached = set(queue)
    while queue:
        node = queue.popleft()
        yield node
        for near in (*(group.start for group in inner.get(node, ())), *targets.get(node, ())):
            if near not in reached:
                reached.add(near)
                queue.append(near)
