"""Parse and format the tags of a new state machine, one per line."""

from __future__ import annotations

from console.errors import ServiceError
from console.feature import Hook, hooked
from console.store.machines import tags as store


def read_tags(text: str) -> tuple[dict[str, str], str]:
    """Return key -> value of lines such as ``team=payments``, and the error, "" if none."""
    tags: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        key, equals, value = (part.strip() for part in line.partition("="))
        if not line.strip():
            continue
        if not equals or not key:
            return {}, f"Line {number}: {line.strip()[:80]!r} is not key=value."
        if key in tags:
            return {}, f"Line {number}: the key {key[:80]!r} is repeated."
        tags[key] = value
    try:
        store.check_tags(tags)
    except ServiceError as error:
        return {}, error.message
    problems = (find(key, tags[key]) for find in hooked(Hook.TAG_PROBLEM) for key in tags)
    if problem := next(filter(None, problems), ""):
        return {}, problem
    return tags, ""


def tag_lines(tags: dict[str, str]) -> str:
    """Return tags as lines for ``read_tags``."""
    return "\n".join(f"{key}={value}" for key, value in tags.items())
