"""Show a definition: its graph beside its JSON text, with links from and to each state."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

import engine
from console.web.graph import graph_view, svg
from console.web.graph.graph_view import graph_view_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from django.http import HttpRequest

    from console.web.graph.graph_view import GraphView

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{},:]|[^\s\[\]{},:"]+')
PAGE_LINES = 5000

Path = tuple[str | int, ...]


def definition_context(
    request: HttpRequest,
    text: str,
    machine_type: str,
    region: str,
    *,
    plain: bool = True,
    steps: str = "",
) -> dict[str, Any]:
    """Return the template context of ``graph/_definition.html``.

    The address may name a state by its ``state`` id, and a ``page`` of a long text. ``plain``: the
    states' boxes have no space for statuses. ``steps``: as in ``StateLinks``.
    """
    asked_state, asked_page = request.GET.get("state", ""), request.GET.get("page", "")
    view = replace(graph_view_of(request), plain=plain)
    context = picture_context(text, machine_type, view, asked_state)
    readable = readable_text(text)
    ids = context["graph"].by_name if context["picture"] else {}
    number = int(asked_page) if re.fullmatch(r"\d{1,6}", asked_page, re.ASCII) else 1
    fits_page = readable.count("\n") < PAGE_LINES
    jump = "#src-" if fits_page else f"?region={region}&state="
    return context | {
        "text": text_page(readable, ids, number, asked_state, StateLinks(steps, jump)),
        "raw_text": text,
        "jump": jump,
        "reformatted": readable != text,
    }


def picture_context(
    text: str, machine_type: str, view: GraphView, state: str = ""
) -> dict[str, Any]:
    """Return the context of a definition's picture, None if it cannot be drawn.

    Groups of a large machine are folded. ``state``: the id of one that must be seen, "" for none.
    """
    try:
        graph = engine.build_graph(engine.parse_stored(text, machine_type))
    except engine.DefinitionError:  # stored by a version that checked less
        return {"picture": None}
    node = graph.by_id.get(state)
    view = graph_view.view_around(graph, node.name if node else "", view)
    picture = svg.definition_picture(text, machine_type, view)
    return {
        "graph": graph,
        "picture": picture,
        "graph_view": view,
        "fold_links": graph_view.fold_links(view, picture),
    }


def readable_text(text: str) -> str:
    """Return a definition's text unchanged, or indented if on a single line."""
    if "\n" in text.strip():
        return text
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except ValueError:
        return text


@dataclass(frozen=True, slots=True)
class TextPage:
    """A page of a definition's text as HTML, with its number."""

    html: SafeString
    number: int
    pages: int

    @property
    def previous(self) -> int:
        """Return the previous page, 0 without one."""
        return self.number - 1

    @property
    def next(self) -> int:
        """Return the next page, 0 without one."""
        return self.number + 1 if self.number < self.pages else 0


@dataclass(frozen=True, slots=True)
class StateLinks:
    """The URLs of links on state names and on references to states.

    ``steps``: the address of an execution's step, up to the state's name, "" for none; ``places``:
    the URL of a state's place in the text, without the id.
    """

    steps: str = ""
    places: str = "#src-"


NO_LINKS = StateLinks("", "")


def text_page(
    text: str,
    ids: Mapping[str, str],
    number: int = 1,
    chosen: str = "",
    links: StateLinks = NO_LINKS,
) -> TextPage:
    """Return a page of ``PAGE_LINES`` lines, with a ``<span id="src-...">`` around each state.

    ``ids``: element ids of the marked states, by name; ``number``: page from 1, too large means the
    last; ``chosen``: the id of a state, whose page is returned instead.
    """
    places = [place for place in state_places(text) if place[0] in ids] if ids else []
    starts = [0, *(match.end() for match in re.finditer("\n", text))]
    pages = starts[::PAGE_LINES]
    at = next((start for name, start, _ in places if ids[name] == chosen), None)
    if at is not None:
        number = bisect_right(pages, at)
    number = min(max(number, 1), len(pages))
    begin, end = pages[number - 1], pages[number] if number < len(pages) else len(text)
    first = (number - 1) * PAGE_LINES
    lines = enumerate(starts[first : first + PAGE_LINES], first + 1)
    marks: list[_Mark] = [(start, 1, f'<i data-line="{line}"></i>') for line, start in lines]
    for name, start, stop in places:
        if begin <= start < end:
            focus = " autofocus" if ids[name] == chosen else ""
            span = f'<span class="src" id="src-{ids[name]}" tabindex="-1"{focus}>'
            marks += [(start, 2, span), (min(stop, end), 0, "</span>")]
    name_places = {start for name, start, _ in places}
    marks += _token_marks(text, (begin, end), ids, name_places, links)
    ordered = sorted(marks, key=lambda mark: mark[:2])
    return TextPage(_with_tags(text, (begin, end), ordered), number, len(pages))


_Mark = tuple[int, int, str]
"""A tag in a text: its place, its order among tags of the same place, the tag."""
_STRING = r'"(?:[^"\\]|\\.)*"'
_COLOURED = re.compile(
    rf"(?P<key>{_STRING})(?=\s*:)|(?P<string>{_STRING})|(?P<number>-?\d[\d.eE+-]*)"
    r"|(?P<constant>\b(?:true|false|null)\b)"
)
_TOKEN_CLASSES = {"string": "s", "number": "n", "constant": "c"}
_NAMING_FIELDS = ('"Next"', '"Default"', '"StartAt"')


def _token_marks(
    text: str,
    part: tuple[int, int],
    ids: Mapping[str, str],
    name_places: set[int],
    links: StateLinks,
) -> Iterator[_Mark]:
    """Yield the colours and links of a part of a text.

    ``ids``: name -> id of each state; ``name_places``: the offsets of keys that name states.
    """
    key = ""
    for match in _COLOURED.finditer(text, *part):
        start, end, kind = match.start(), match.end(), match.lastgroup or ""
        closing, token = "</span>", match[0]
        if kind == "key":
            key = token
            if start not in name_places:
                continue
            opening = '<span class="state-key">'
            if links.steps:
                name = quote(json.loads(token), safe="")
                opening = f'<a class="state-key" href="{escape(links.steps)}{name}">'
                closing = "</a>"
        else:
            opening = f'<span class="{_TOKEN_CLASSES[kind]}">'
            state = ids.get(_name(token), "") if key in _NAMING_FIELDS else ""
            if state and links.places:
                opening = f'<a class="s" href="{escape(links.places)}{state}">'
                closing = "</a>"
        yield start, 3, opening
        yield end, 0, closing


def _name(token: str) -> str:
    """Return the value of a JSON string, "" for other values."""
    try:
        value = json.loads(token)
    except ValueError:
        return ""
    return value if isinstance(value, str) else ""


def _with_tags(text: str, part: tuple[int, int], marks: Iterable[_Mark]) -> SafeString:
    """Return a part of a text as HTML with its marks, which are in order."""
    pieces: list[str] = []
    place, end = part
    for start, _, tag in marks:
        pieces += [escape(text[place:start]), tag]
        place = start
    return mark_safe("".join([*pieces, escape(text[place:end])]))  # noqa: S308 - escaped above


def coloured_text(text: str) -> SafeString:
    """Return a JSON text as HTML, coloured by type of value."""
    span = 0, len(text)
    return _with_tags(text, span, _token_marks(text, span, {}, set(), NO_LINKS))


def state_places(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield (name, start of its key, end of its value) of every state of a valid text."""
    for path, start, end in _objects(text):
        if _is_state(path):
            yield str(path[-1]), start, end


def _is_state(path: Path) -> bool:
    """Whether a JSON path is a state's, not that of a payload with the same names."""
    while len(path) >= 2 and path[-2] == "States":  # noqa: PLR2004 - "States", its name
        path = path[:-2]
        if not path:
            return True
        if path[-1] in ("ItemProcessor", "Iterator"):
            path = path[:-1]
        elif isinstance(path[-1], int) and path[-2:-1] == ("Branches",):
            path = path[:-2]
        else:
            return False
    return False


@dataclass(slots=True)
class _Open:
    """A container being read; ``key``: its current key, ``start``: the position of its own key."""

    start: int
    index: int | None
    key: str | None = None
    key_at: int = 0


def _objects(text: str) -> Iterator[tuple[Path, int, int]]:
    """Yield (path, start with its key, end) of every value in braces or brackets."""
    stack: list[_Open] = []
    for match in _TOKEN.finditer(text):
        token = match[0]
        if token in "{[":
            keyed = bool(stack) and stack[-1].key is not None
            start = stack[-1].key_at if keyed else match.start()
            stack.append(_Open(start, 0 if token == "[" else None))
        elif token in "}]":
            entry = stack.pop()
            yield _path(stack), entry.start, match.end()
        elif token == ",":
            stack[-1].key = None
            if stack[-1].index is not None:
                stack[-1].index += 1
        elif token != ":" and stack and stack[-1].index is None and stack[-1].key is None:
            stack[-1].key, stack[-1].key_at = json.loads(token), match.start()


def _path(stack: list[_Open]) -> Path:
    return tuple(entry.key or "" if entry.index is None else entry.index for entry in stack)
