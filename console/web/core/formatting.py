"""Format values for the pages: statuses, times, sizes, JSON payloads, causes of failures.

A status is always shown by a colour (CSS class), an icon and a word.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from console.db import clock
from console.statuses import ExecutionStatus

if TYPE_CHECKING:
    from collections.abc import Sequence

SECOND, MINUTE, HOUR, DAY = 1_000, 60_000, 3_600_000, 86_400_000
KIB = 1024
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


@dataclass(frozen=True, slots=True)
class StatusLabel:
    """A status. ``tone``: CSS class and icon name; ``word``: its text."""

    tone: str
    word: str


EXECUTION: dict[str, StatusLabel] = {
    ExecutionStatus.RUNNING: StatusLabel("running", "Running"),
    ExecutionStatus.SUCCEEDED: StatusLabel("succeeded", "Succeeded"),
    ExecutionStatus.FAILED: StatusLabel("failed", "Failed"),
    ExecutionStatus.TIMED_OUT: StatusLabel("failed", "Timed out"),
    ExecutionStatus.ABORTED: StatusLabel("aborted", "Aborted"),
    ExecutionStatus.PENDING_REDRIVE: StatusLabel("idle", "Pending redrive"),
    ExecutionStatus.UNFINISHED: StatusLabel("idle", "Unfinished"),
}
_UNLISTED = (ExecutionStatus.PENDING_REDRIVE, ExecutionStatus.UNFINISHED)
LISTED = {key: label for key, label in EXECUTION.items() if key not in _UNLISTED}
BREAK_TIMES = {
    "before": "Before its work",
    "after": "After its success",
    "error": "When it fails",
}
"""The time at which a line of control halts at a state, in words."""
STEP = {
    "": StatusLabel("idle", "Not entered"),
    "running": StatusLabel("running", "In progress"),
    "succeeded": StatusLabel("succeeded", "Succeeded"),
    "caught": StatusLabel("caught", "Caught error"),
    "failed": StatusLabel("failed", "Failed"),
    "timed_out": StatusLabel("failed", "Timed out"),
    "aborted": StatusLabel("aborted", "Aborted"),
}
"""Status of a visit -> its label, "" for a state that was not entered."""
LEGEND = tuple(label for status, label in STEP.items() if status != "timed_out")
"""The labels of the legend, one per colour: timed-out states share the entry of failed states."""
IN_CHILD_EXECUTIONS = StatusLabel("idle", "In child executions")
"""The label of an entered state inside a distributed Map."""


def duration_text(milliseconds: int) -> str:
    """Format a duration with at most two units: ``45 ms``, ``1.2 s``, ``3 min 05 s``."""
    span = max(milliseconds, 0)
    if span < SECOND:
        return f"{span} ms"
    if span < MINUTE:
        return f"{span / SECOND:.1f} s" if span < 10 * SECOND else f"{span // SECOND} s"
    for unit, name, small, small_name in (
        (DAY, "d", HOUR, "h"),
        (HOUR, "h", MINUTE, "min"),
        (MINUTE, "min", SECOND, "s"),
    ):
        if span >= unit:
            return f"{span // unit} {name} {span % unit // small:02d} {small_name}"
    raise AssertionError(span)


def ticking_text(milliseconds: int) -> str:
    """Format a duration that the page's script counts on, without fractions of a second."""
    seconds = max(milliseconds, 0) // SECOND
    return f"{seconds} s" if seconds < MINUTE // SECOND else duration_text(seconds * SECOND)


def limit_text(milliseconds: int) -> str:
    """Format a configured limit without zero parts: ``1 h``, ``5 s``."""
    return _ZERO_PART.sub("", duration_text(milliseconds))


_ZERO_PART = re.compile(r" 00 \w+$|\.0(?= s$)")


def rough_duration(milliseconds: int) -> str:
    """Format a duration with one unit, off by at most a tenth: ``3 d``, ``90 min``."""
    for unit, name in ((DAY, "d"), (HOUR, "h"), (MINUTE, "min"), (SECOND, "s")):
        count = round(milliseconds / unit)
        if count and abs(count * unit - milliseconds) <= milliseconds / 10:
            return f"{count} {name}"
    return f"{max(milliseconds, 0)} ms"


def iso_text(milliseconds: int) -> str:
    """Return RFC 3339 in UTC with milliseconds, for the ``datetime`` attribute."""
    moment = clock.moment_of(milliseconds).replace(tzinfo=None)
    return f"{moment.isoformat(timespec='milliseconds')}Z"


def clock_text(milliseconds: int, *, precise: bool = False) -> str:
    """Format a time in UTC; ``precise`` with milliseconds."""
    moment = clock.moment_of(milliseconds).replace(tzinfo=None)
    return moment.isoformat(" ", "milliseconds" if precise else "seconds")


def size_text(count: int) -> str:
    """Format a number of bytes."""
    return f"{count} B" if count < KIB else f"{count / KIB:.1f} KiB"


_WORD_STARTS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def action_words(action: str) -> str:
    """Return an API action in words: ``events:PutRule`` is "Put rule"."""
    words = _WORD_STARTS.sub(" ", action.rpartition(":")[2]).split(" ")
    return " ".join([words[0], *(word.lower() for word in words[1:])])


def visible_text(text: str) -> str:
    """Show control characters as their Unicode pictures, so that none hides in a name."""
    return text.translate(_PICTURES)


_PICTURES = {code: chr(0x2400 + code) for code in range(0x20) if code not in (0x09, 0x0A)} | {
    0x7F: "\u2421"
}


def without_formula(text: str) -> str:
    """Prefix a quote to a text that spreadsheets would take for a formula."""
    return f"'{text}" if text.startswith(_FORMULA) else text


# -- payloads --------------------------------------------------------------------------------------

# A payload is a tree of ``<details>`` that works without scripts. Numbers keep their spelling,
# duplicate keys stay, long strings wrap, all text is escaped. Of large payloads the beginning is
# shown as text, one member per line.

TREE_LIMIT = 64 * 1024
"""Payloads above this many characters are shown cut, as text, with a link to all of it."""
OPEN_LEVELS, DEEPEST = 2, 40
MOST_CHILDREN = 200
"""The number of children shown of an array or object; copying takes all of it."""
SMALL = 60  # an object or array whose text is at most this long stays on one line


@dataclass(frozen=True, slots=True)
class PayloadView:
    """A payload for the template. ``url``: the address of its full text, or ""."""

    text: str
    html: SafeString
    size: str
    cut: bool = False
    url: str = ""


class _Number(str):
    """A number with its spelling."""

    __slots__ = ()


class _Members(list[tuple[str, Any]]):
    """An object's members in order, including duplicates."""


def payload_view(text: str, url: str = "") -> PayloadView:
    """Return a payload for display. ``text``: JSON; other text is shown unchanged."""
    count = size_text(len(text.encode("utf-8", "surrogatepass")))
    if len(text) > TREE_LIMIT:
        beginning = escape(visible_text(_laid_out(text)))
        return PayloadView("", mark_safe(f"<pre>{beginning}…</pre>"), count, cut=True, url=url)  # noqa: S308 - escaped
    return PayloadView(text, _whole_html(text), count, url=url)


@lru_cache(maxsize=16)
def _whole_html(text: str) -> SafeString:
    """Return the HTML of a payload, cached because pages and polls repeat payloads."""
    try:
        return mark_safe(_tree_html(_parse(text), 0, ""))  # noqa: S308 - escaped below
    except (ValueError, RecursionError):
        return mark_safe(f"<pre>{escape(visible_text(text))}</pre>")  # noqa: S308 - escaped


_PIECE = re.compile(r'"(?:[^"\\]|\\.)*(?:"|$)|[{}\[\],:]|[^\s"{}\[\],:]+', re.DOTALL)
_CLOSING = {"{": "}", "[": "]"}


def _laid_out(text: str) -> str:
    """Return the first ``TREE_LIMIT`` characters of a long text; of JSON one member per line.

    Nothing but white space between values is changed, so the beginning need not be whole.
    """
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return text[:TREE_LIMIT]
    pieces = _PIECE.findall(text[:TREE_LIMIT])
    parts: list[str] = []
    depth = place = 0
    while place < len(pieces):
        piece = pieces[place]
        if piece in _CLOSING and (line := _on_one_line(pieces, place)):
            parts += line
            place += len(line)
            continue
        depth += (piece in _CLOSING) - (piece in _CLOSING.values())
        broken = "\n" + "  " * min(depth, DEEPEST)
        if piece in _CLOSING or piece == ",":
            parts += piece, broken
        elif piece in _CLOSING.values():
            parts += broken, piece
        else:
            parts.append(": " if piece == ":" else piece)
        place += 1
    return "".join(parts)


def _on_one_line(pieces: Sequence[str], place: int) -> list[str]:
    """Return the spaced pieces of a short flat object or array; else none."""
    line, length = [pieces[place]], 1
    for piece in islice(pieces, place + 1, place + SMALL):
        length += len(piece)
        if length > SMALL or piece in _CLOSING:
            return []
        line.append(f"{piece} " if piece in {",", ":"} else piece)
        if piece in _CLOSING.values():
            return line
    return []


def is_equal_but_for_spaces(text: str, other: str) -> bool:
    """Whether two JSON texts differ only in whitespace between tokens.

    Numbers count as they are written, members in their order, and repeated keys. Raise
    ``ValueError`` if the texts differ and one of them is no JSON.
    """
    return text == other or _parts_of(text) == _parts_of(other)


def _parts_of(text: str) -> Any:
    """Parse JSON: objects as tuples of members, arrays as lists, numbers as texts."""
    number = "\0{}".format  # no text of a payload begins so by accident
    return json.loads(
        text,
        object_pairs_hook=tuple,
        parse_int=number,
        parse_float=number,
        parse_constant=number,
    )


def _parse(text: str) -> Any:
    return json.loads(text, object_pairs_hook=_Members, parse_int=_Number, parse_float=_Number)


def _tree_html(value: Any, level: int, label: str) -> str:
    """Return the HTML of a value. ``label``: HTML of its key with colon, or ""."""
    if isinstance(value, list) and value:
        flat = _short_text(value)
        if len(flat) > SMALL and level < DEEPEST:
            return _branch_html(value, level, label)
        return f'<div class="leaf">{label}{_coloured_html(value)}</div>'
    inner = _json_in_text(value) if level < DEEPEST else None
    if inner:
        return _branch_html(inner, level, label, quote='"')
    return f'<div class="leaf">{label}{_coloured_html(value)}</div>'


def _json_in_text(value: Any) -> list[Any] | None:
    """Return the object or array inside a long string of JSON, as in causes and bodies."""
    if not isinstance(value, str) or len(value) <= SMALL or value[0] not in "{[":
        return None
    try:
        inner = _parse(value)
    except (ValueError, RecursionError):
        return None
    return inner if isinstance(inner, list) else None


def _branch_html(value: list[Any], level: int, label: str, quote: str = "") -> str:
    """Return an object or array. ``quote``: quotation marks around JSON inside a string."""
    signs = "{}" if isinstance(value, _Members) else "[]"
    noun = ("key", "keys") if isinstance(value, _Members) else ("item", "items")
    count = f"{len(value)} {noun[len(value) != 1]}{', JSON in a string' if quote else ''}"
    children = value[:MOST_CHILDREN]
    parts = (
        [_tree_html(inner, level + 1, _key_html(key)) for key, inner in children]
        if isinstance(value, _Members)
        else [_tree_html(inner, level + 1, "") for inner in children]
    )
    if len(value) > len(children):
        rest = f"… {len(value) - len(children):,} more {noun[1]}: the raw text and a copy have them"
        parts.append(f'<div class="leaf"><i>{rest}</i></div>')
    state = " open" if level < OPEN_LEVELS else ""
    return (
        f"<details{state}><summary>{label}<b>{quote}{signs[0]}</b><i>{count}</i></summary>"
        f'<div class="inner">{"".join(parts)}</div><b>{signs[1]}{quote}</b></details>'
    )


def _key_html(key: str) -> str:
    return f'<span class="k">{_quoted_html(key)}</span>: '


def _quoted_html(text: str) -> str:
    return f"<bdi>{escape(json.dumps(text, ensure_ascii=False))}</bdi>"


def _coloured_html(value: Any) -> str:
    """Return a value on one line, coloured by type."""
    if isinstance(value, _Members):
        inner = ", ".join(f"{_key_html(key)}{_coloured_html(item)}" for key, item in value)
        return f"{{{inner}}}"
    if isinstance(value, list):
        return f"[{', '.join(_coloured_html(item) for item in value)}]"
    if isinstance(value, _Number):
        return f'<span class="n">{escape(value)}</span>'
    if isinstance(value, str):
        return f'<span class="s">{_quoted_html(value)}</span>'
    return f'<span class="c">{json.dumps(value)}</span>'


def _short_text(value: Any) -> str:
    """Return the approximate text of a value; stop once it is surely long."""
    if isinstance(value, _Members):
        return "".join(f"{key}: {_short_text(item)}, " for key, item in value[:SMALL])
    if isinstance(value, list):
        return "".join(f"{_short_text(item)}, " for item in value[:SMALL])
    return str(value)[: SMALL + 1]


# -- causes of failures ----------------------------------------------------------------------------

# Functions report errors as JSON. To group equal failures, numbers, ids and times are removed:
# "order 4711 is too large" and "order 4712 is too large" are the same failure.

_MESSAGES = ("errorMessage", "message", "Message", "Cause")
_KINDS = ("errorType", "Error", "name", "__type")
_STACKS = ("stackTrace", "trace", "stack")
_LONGEST_CAUSE = 300
_CODE = (
    r"(?i:\b(?:status|(?:status|error|exit|response|http)?[_-]?code|https?(?:/[\d.]+)?)"
    r"[\"']?\s?[:=]?\s?[\"']?[1-5]\d\d)\b"
    r"|\b[45]\d\d(?= (?:Client|Server) Error\b)"
    r"|\b[DESTU]\d{4}\b"  # JSONata's are of this form
)
"""Digits that identify the error: ``Status Code: 404``, ``T2001``. Those of ids do not."""


def _code_or_number(match: re.Match[str]) -> str:
    """Return the placeholder for a number; an error code stays."""
    return match[1] or "<n>"


_NOISE = tuple(
    (re.compile(pattern), word)
    for pattern, word in (
        (r"\barn:aws[\w-]*:[^\s\"'`,()\[\]{}<>]+", "<arn>"),
        (r"\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b", "<id>"),
        (r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?", "<time>"),
        (r"\b(?=[0-9a-fA-F]*\d)(?=[0-9a-fA-F]*[a-fA-F])[0-9a-fA-F]{8,}\b", "<id>"),
        (rf"({_CODE})|(?<![\w.])-?\d+(?:\.\d+)?|\d{{3,}}", _code_or_number),
        (r"\s+", " "),
    )
)


@dataclass(frozen=True, slots=True)
class Cause:
    """A parsed Cause. ``raw``: the original text. Other fields are "" if missing."""

    raw: str
    message: str = ""
    kind: str = ""
    stack: str = ""

    @property
    def text(self) -> str:
        """Return the message of the error."""
        return self.message or self.raw


_DEEPEST_CAUSE = 5
"""The maximum nesting of causes: each nested execution wraps the cause of its child."""


def cause_of(text: str | None, depth: int = 0) -> Cause | None:
    """Parse a Cause such as ``{"errorMessage", "errorType", "stackTrace"}``.

    A nested execution reports ``{"ExecutionArn", "Error", "Cause", …}``, and its Cause may have
    this form, too. Message, kind and stack are those of the innermost Cause.
    """
    if not text:
        return None
    try:
        parts = json.loads(text)
    except (ValueError, RecursionError):
        return Cause(text)
    if not isinstance(parts, dict):
        return Cause(text)
    message = _first_value(parts, _MESSAGES)
    if not isinstance(message, str):
        return Cause(text)
    kind = _first_value(parts, _KINDS)
    outer = Cause(text, message, kind if isinstance(kind, str) else "", _stack_text(parts))
    inner = cause_of(message, depth + 1) if depth < _DEEPEST_CAUSE else None
    if inner is None or not inner.message:
        return outer
    return Cause(text, inner.message, inner.kind or outer.kind, inner.stack or outer.stack)


def normalized_text(text: str | None) -> str:
    """Return a Cause with numbers, ids and times replaced."""
    cause = cause_of(text)
    if cause is None:
        return ""
    message = f"{cause.kind}: {cause.message}" if cause.message and cause.kind else cause.message
    full_text = message or cause.raw
    message = full_text[: 4 * _LONGEST_CAUSE]
    for pattern, word in _NOISE:
        message = pattern.sub(word, message)
    message = message.strip()
    if len(message) <= _LONGEST_CAUSE and len(full_text) <= 4 * _LONGEST_CAUSE:
        return message
    return f"{message[: _LONGEST_CAUSE - 1].rstrip()}…"


def _first_value(parts: dict[str, Any], names: tuple[str, ...]) -> Any:
    return next((parts[name] for name in names if name in parts), None)


def _stack_text(parts: dict[str, Any]) -> str:
    """Return the stack frames, one per line: Python and Node report lists, others one text."""
    frames = _first_value(parts, _STACKS)
    if isinstance(frames, str):
        return frames
    if not isinstance(frames, list):
        return ""
    return "\n".join(_frame_text(frame).rstrip("\n") for frame in frames)


def _frame_text(frame: Any) -> str:
    """Return one stack frame; old Python runtimes report ``[file, line, function, text]``."""
    if isinstance(frame, list) and len(frame) == 4:  # noqa: PLR2004 - the four named above
        return f'File "{frame[0]}", line {frame[1]}, in {frame[2]}\n  {frame[3]}'
    return frame if isinstance(frame, str) else json.dumps(frame, ensure_ascii=False)
