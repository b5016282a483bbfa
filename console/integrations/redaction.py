"""Redact secret values from texts, in every encoding in which a server may echo them.

A value is found in plain text, with any of its characters percent-encoded or escaped as in JSON or
HTML, in Base64 (also within a longer text in Base64), and in hexadecimal digits. Values computed in
other ways, such as hashes, are not found.
"""

from __future__ import annotations

import base64
import html
import json
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit, urlunsplit

import engine
from console.events import addresses
from console.masking.mask import MASK

if TYPE_CHECKING:
    from collections.abc import Iterable

SHORTEST = 4
"""Shorter values are not redacted, because they occur in every text."""
_SHORTEST_PART = 8
"""The same for a value within a longer text in Base64."""
_END = 24
"""Characters at each end by which a long value is found."""
_LONGEST_SPELLING = 12
"""Length of the longest encoding of a character: four percent-encoded bytes."""
_OPEN = ("arn:", "mailto:")
_SCHEMES = re.compile(r"(?:basic|bearer|token|apikey|digest)\s+(\S.*)", re.IGNORECASE | re.DOTALL)
_URL = re.compile(r"(?:(?:slack|teams)\+)?https?://[^\s\"'<>\\]+", re.IGNORECASE)
_HOOKS = re.compile(r"(?:in(?:coming)?-?|web)?hooks?(?:b\d+)?", re.IGNORECASE)
"""A label of a host, or a part of a path, that is followed by a secret part."""
_SIGNS = re.compile(r"[-_.~:=@]|%..")
_WORDS = re.compile(r"[a-z]{1,15}|v\d{1,2}|\d{1,12}")
_RANDOM = re.compile(r"(?=[^\W\d]*\d)(?=\d*[^\W\d])\w{12,}|[^\W\d_]{28,}", re.ASCII)
"""Letters together with digits, or more letters than words have, without a sign between them."""
_CASES = re.compile(r"[A-Z][a-z]*|[a-z]+")
_LONG, _WORD = 16, 3
_LETTERS = {"\n": "n", "\r": "r", "\t": "t", "\b": "b", "\f": "f"}


def redact(value: Any, secrets: Iterable[str]) -> Any:
    """Return a text, or an object of texts, with secret values redacted."""
    pattern = _pattern(frozenset(secrets))
    return value if pattern is None else _within(value, pattern)


def redact_json(value: Any, secrets: Iterable[str]) -> Any:
    """Return a JSON value with secrets redacted in texts, member names and numbers."""
    pattern = _pattern(frozenset(secrets))
    return value if pattern is None else _redact_json(value, pattern)


def _redact_json(value: Any, pattern: re.Pattern[str]) -> Any:
    if isinstance(value, dict):
        return {
            _within(name, pattern): _redact_json(member, pattern) for name, member in value.items()
        }
    if isinstance(value, list):
        return [_redact_json(item, pattern) for item in value]
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, str):
        return _within(value, pattern)
    return MASK if pattern.search(engine.dumps(value)) else value


def without_secrets(url: str) -> str:
    """Return a URL for display, without user, password and query.

    The path of a chat's webhook is a secret, too. In other paths, a part is a secret if it looks
    like one: long and random, or a part after ``hooks`` or ``webhook`` that is no plain word. An
    ARN and a mail address hold no secret.
    """
    if url.startswith(_OPEN):
        return url
    try:
        parts = urlsplit(url)
    except ValueError:
        return MASK
    host = parts.netloc.rpartition("@")[2]
    query = MASK if parts.query else ""
    path = _masked_path(url, parts)
    return urlunsplit(parts._replace(netloc=host, path=path, query=query, fragment=""))


def _masked_path(url: str, parts: SplitResult) -> str:
    """Return the path of a URL without parts that look like secrets."""
    if addresses.web_address(url) != url:
        return f"/{MASK}"
    hook = any(map(_HOOKS.fullmatch, (parts.hostname or "").split(".")))
    visible: list[str] = []
    for part in parts.path.split("/"):
        words = filter(None, _SIGNS.split(part))
        if hook and not all(map(_WORDS.fullmatch, words)):
            return "/".join([*visible, MASK])  # what follows is for the same receiver
        visible.append(MASK if _is_random(part) else part)
        hook = hook or _HOOKS.fullmatch(part) is not None
    return "/".join(visible)


def _is_random(part: str) -> bool:
    """Whether a part of a path looks like a generated key, not a word or number."""
    names = _SIGNS.split(part)
    if any(_RANDOM.fullmatch(name) for name in names):
        return True
    # CreateOrder has long words; aZbQc has none
    words = [word for name in names for word in _CASES.findall(name)]
    letters = sum(map(len, words))
    return len(part) >= _LONG and letters >= _LONG // 2 and letters < _WORD * len(words)


def without_url_secrets(text: str, url: str = "") -> str:
    """Return a text with each URL in it shortened by ``without_secrets``.

    ``url``: the called URL; its secrets are also removed outside of URLs, where a server may echo
    them.
    """
    if url:
        called = addresses.web_address(url)
        text = redact(text.replace(called, without_secrets(url)), url_secrets(url))
    return _URL.sub(lambda match: without_secrets(match[0]), text) if "://" in text else text


def url_secrets(url: str) -> tuple[str, ...]:
    """Return the secret parts of a URL, removed by ``without_secrets``."""
    if url.startswith(_OPEN):
        return ()
    try:
        parts = urlsplit(url)
    except ValueError:
        return (url,)
    user = parts.netloc.rpartition("@")[0]
    visible = set(_masked_path(url, parts).split("/"))
    hidden = [part for part in parts.path.split("/") if part not in visible]
    secrets = [user, *user.split(":", 1), parts.query, "/".join(hidden), *hidden]
    values = [value for _, value in parse_qsl(parts.query)]
    return tuple(form for text in (*secrets, *values) for form in {text, unquote(text)} if form)


def _within(value: Any, pattern: re.Pattern[str]) -> Any:
    if isinstance(value, dict):
        return {name: _within(member, pattern) for name, member in value.items()}
    if not isinstance(value, str) or not pattern.search(value):
        return value
    redacted = pattern.sub(MASK, value)
    # a number that is a secret leaves no JSON behind, which a client would stumble over
    return json.dumps(MASK) if _is_json(value) and not _is_json(redacted) else redacted


def _is_json(text: str) -> bool:
    try:
        engine.loads(text)
    except engine.JsonTextError:
        return False
    return True


@lru_cache(maxsize=64)
def _pattern(secrets: frozenset[str]) -> re.Pattern[str] | None:
    texts = {form for secret in secrets for form in _forms(secret) if len(form) >= SHORTEST}
    # the longest first: a value may begin with another
    parts = [_spelled_form(form) for form in sorted(texts, key=len, reverse=True)]
    return re.compile("|".join(parts)) if parts else None


def _forms(value: str) -> Iterable[str]:
    yield value
    scheme = _SCHEMES.fullmatch(value)
    if scheme:  # as in "Bearer TOKEN"
        yield from _forms(scheme[1])
    if len(value) < SHORTEST:
        return
    data = value.encode("utf-8", "surrogatepass")
    for encoded in (base64.b64encode(data), base64.urlsafe_b64encode(data)):
        yield encoded.decode().rstrip("=")  # with what padding there is, or without
    yield from (data.hex(), data.hex().upper())
    for before in range(3):  # bytes of a longer text that stand before it in a group of three
        padded = b"\0" * before + data
        first = -(-before * 4 // 3)
        last = len(padded) * 4 // 3
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            part = encode(padded).decode()[first:last]
            if len(part) >= _SHORTEST_PART:
                yield part


def _spelled_form(form: str) -> str:
    """Return a pattern for a form of a value; of a long one, such as a JWT, its two ends.

    Between the two ends, any text up to the length of the longest encoding matches. Compiling the
    whole value would take seconds.
    """
    if len(form) <= 2 * _END or form[:_END] in form[1:]:
        return "".join(map(_character_pattern, form))
    first, last = ("".join(map(_character_pattern, end)) for end in (form[:_END], form[-_END:]))
    return f"{first}(?s:(?!{first}).){{0,{_LONGEST_SPELLING * len(form)}}}?{last}"


@lru_cache(maxsize=4096)
def _character_pattern(character: str) -> str:
    """Return a pattern that matches a character in all its encodings."""
    data = character.encode("utf-8", "surrogatepass")
    spellings = [
        re.escape(character),
        "".join(f"%(?i:{byte:02x})" for byte in data),
        "".join(rf"\\{{1,4}}x(?i:{byte:02x})" for byte in data),  # as Python writes bytes
        rf"&\#0*{ord(character)};",
        rf"&\#[xX]0*(?i:{ord(character):x});",
    ]
    if ord(character) < 0x10000:  # noqa: PLR2004 - JSON writes those as one escape
        spellings.append(rf"\\{{1,4}}u(?i:{ord(character):04x})")
    if character in '"\\/':
        spellings.append(r"\\{1,8}" + re.escape(character))
    if character in _LETTERS:
        spellings.append(r"\\{1,4}" + _LETTERS[character])
    if character == " ":
        spellings.append(r"\+")
    if (named := html.escape(character)) != character:
        spellings.append(named)
    return f"(?:{'|'.join(spellings)})"
