"""Parse the Cause of a failure, and normalize it to group equal failures.

Functions report errors as JSON. For comparison, numbers, ids and times are removed: "order 4711 is
too large" and "order 4712 is too large" are the same failure.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

_MESSAGES = ("errorMessage", "message", "Message", "Cause")
_KINDS = ("errorType", "Error", "name", "__type")
_STACKS = ("stackTrace", "trace", "stack")
_LONGEST = 300
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


_DEEPEST = 5
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
    inner = cause_of(message, depth + 1) if depth < _DEEPEST else None
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
    message = full_text[: 4 * _LONGEST]
    for pattern, word in _NOISE:
        message = pattern.sub(word, message)
    message = message.strip()
    if len(message) <= _LONGEST and len(full_text) <= 4 * _LONGEST:
        return message
    return f"{message[: _LONGEST - 1].rstrip()}…"


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
