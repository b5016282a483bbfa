"""Match patterns of IAM policies against texts with unknown parts.

A text has *holes* for unknown values: ``${Name}`` for a template's value, ``${}`` for one of an
execution. Holes of the same name are equal. Patterns may have holes, too, besides ``*`` and ``?``;
``${*}``, ``${?}`` and ``${$}`` stand for these characters. Source: "IAM JSON policy elements:
Variables and tags".
"""

from __future__ import annotations

import re
from enum import IntEnum
from functools import lru_cache
from typing import Any

import re2

HOLE = "${}"
"""A value known only in an execution."""
_TOKEN = re.compile(r"\$\{([^{}]*)\}|\{\{resolve:[^{}]*\}\}|#\{[^{}]*\}|.", re.DOTALL)
_HOLE_BRACE = re.compile(r"(?<=[$#])\{|\{(?=\{resolve:)")
_BRACE = "\ue07b"
"""Escapes the brace of a literal ``${``: a private-use character, which no name has."""
_ESCAPED = {"*": "*", "?": "?", "$": "$"}
_ANY, _ONE = "any", "one"
_ARN_PARTS = 6


class Fit(IntEnum):
    """Whether a pattern matches a text: for no, some or all values of its holes."""

    NEVER = 0
    MAYBE = 1
    ALWAYS = 2

    def inverted(self) -> Fit:
        """Return the outcome of the negated comparison."""
        return Fit(2 - self)


def literal_text(text: str) -> str:
    """Escape a known value, so that ``${Name}`` in it is text and not a hole."""
    return _HOLE_BRACE.sub(_BRACE, text)


def plain_text(text: str) -> str:
    """Undo ``literal_text``, for display."""
    return text.replace(_BRACE, "{")


def has_holes(text: str) -> bool:
    """Return whether a text has holes."""
    return any(len(token) > 1 for token in _text_tokens(text))


def count_holes(text: str) -> int:
    """Return the number of holes in a text."""
    return sum(len(match[0]) > 1 for match in _TOKEN.finditer(text))


def match_text(pattern: str, text: str, *, wildcards: bool = True) -> Fit:
    """Match a pattern with a text. ``wildcards``: whether ``*`` and ``?`` are wildcards."""
    return _match(pattern, text, wildcards)


def match_arn(pattern: str, text: str) -> Fit:
    """Match an ARN part by part, as ``ArnLike`` does."""
    parts, values = split_arn(pattern), split_arn(text)
    if len(parts) < _ARN_PARTS or len(values) < _ARN_PARTS:  # AWS does not say what matches then
        whole = match_text(pattern, text)
        return whole if pattern == "*" else min(whole, Fit.MAYBE)
    return min(match_text(part, value) for part, value in zip(parts, values, strict=True))


def match_resource(pattern: str, text: str) -> Fit:
    """Match a policy's Resource with an ARN; missing trailing parts match everything."""
    if pattern.startswith("arn:"):
        pattern += ":*" * (_ARN_PARTS - len(split_arn(pattern)))
    return match_text(pattern, text)


def split_arn(text: str) -> list[str]:
    """Return the parts of an ARN, at most six; a hole such as ``${AWS::Region}`` is kept whole."""
    parts = [""]
    for token in _text_tokens(text):
        if token == ":" and len(parts) < _ARN_PARTS:
            parts.append("")
        else:
            parts[-1] += token
    return parts


@lru_cache(maxsize=16_384)
def _match(pattern: str, text: str, wildcards: bool) -> Fit:
    if _expression(pattern, wildcards=wildcards).fullmatch(_encoded(text)):
        return Fit.ALWAYS
    expected, actual = _pattern_tokens(pattern, wildcards=wildcards), _text_tokens(text)
    if all(len(token) == 1 or token in (_ANY, _ONE) for token in expected) and not has_holes(text):
        return Fit.NEVER
    if not _begin_alike(expected, actual) or not _begin_alike(expected[::-1], actual[::-1]):
        return Fit.NEVER
    return Fit.MAYBE if _meets(expected, actual) else Fit.NEVER


@lru_cache(maxsize=4_096)
def _expression(pattern: str, *, wildcards: bool) -> Any:
    """Return the regular expression for texts that match a pattern whatever their holes are.

    A hole is a unit between two control characters; ``*`` matches it, ``?`` does not.
    """
    parts = {_ANY: r"(?:[^\x00\x01]|\x00[^\x01]*\x01)*", _ONE: r"[^\x00\x01]"}
    tokens = _pattern_tokens(pattern, wildcards=wildcards)
    return re2.compile(
        "(?s)" + "".join(parts.get(token) or re2.escape(_unit(token, "\x02")) for token in tokens)
    )


@lru_cache(maxsize=16_384)
def _encoded(text: str) -> str:
    return "".join(_unit(token, "") for token in _text_tokens(text))


def _unit(token: str, unnamed: str) -> str:
    """Return a token of an expression; ``unnamed``: for a hole that equals no other."""
    if len(token) == 1:
        return token
    return f"\x00{unnamed if token == HOLE else token}\x01"


def _begin_alike(pattern: tuple[str, ...], text: tuple[str, ...]) -> bool:
    """Return whether the characters before the first wildcards and holes are equal."""
    for expected, actual in zip(pattern, text, strict=False):
        if len(expected) > 1 or len(actual) > 1:
            return True
        if expected != actual:
            return False
    return True


@lru_cache(maxsize=16_384)
def _pattern_tokens(pattern: str, *, wildcards: bool) -> tuple[str, ...]:
    tokens = []
    for match in _TOKEN.finditer(pattern):
        token = match[0]
        if match[1] in _ESCAPED:
            token = _ESCAPED[match[1]]
        elif wildcards and token in "*?":
            token = _ANY if token == "*" else _ONE
        tokens.append(token)
    return tuple(tokens)


@lru_cache(maxsize=16_384)
def _text_tokens(text: str) -> tuple[str, ...]:
    return tuple(match[0] for match in _TOKEN.finditer(text))


def _meets(pattern: tuple[str, ...], text: tuple[str, ...]) -> bool:
    """Return whether a pattern matches a text for some values of the holes."""

    def is_open(token: str) -> bool:
        return len(token) > 1 and token != _ONE

    # rows[place]: the pattern's first tokens can match the text read so far
    row = [True] * (len(pattern) + 1)
    for place, token in enumerate(pattern, 1):
        row[place] = row[place - 1] and is_open(token)
    for token in text:
        before, row = row, [row[0] and is_open(token)] + [False] * len(pattern)
        for place, expected in enumerate(pattern, 1):
            if is_open(expected) or is_open(token):  # it matches nothing, or one token more
                row[place] = row[place - 1] or before[place]
                continue
            row[place] = before[place - 1] and expected in (_ONE, token)
    return row[-1]
