"""Parse JSON and YAML files, with CloudFormation's short tags such as ``!Ref``."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import yaml

from console.config.yaml_loader import Loader

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

YAML_ENDS = (".yaml", ".yml")
JSON_ENDS = (".json",)
READ_FILES: dict[Path, int] = {}
"""The files that were read -> their modification time then; ``--watch`` compares it."""
WARNINGS: dict[str, None] = {}
"""Warnings about the files that were read, one line each."""


MOST_CHARACTERS = 16_777_216
"""The maximum length of all results of a template's functions, or of a text's placeholder values.

Definitions have at most a mebibyte.
"""
_MOST_NODES = 300_000
"""Values in a document. A few lines with ``*`` aliases can mean billions."""
_KINDS = {
    dict: "an object",
    list: "a list",
    str: "a text",
    bool: "true or false",
    int: "a number",
    float: "a number",
    type(None): "null",
}
_CONSTRUCTOR_ERRORS = (
    *(yaml.YAMLError, RecursionError, ValueError, TypeError, AttributeError, LookupError),
    OverflowError,
)
"""Exceptions of PyYAML for values that do not fit their tag, such as ``!!float x``."""


class SourceError(Exception):
    """A file cannot be used. One line per error: file, place, actual, expected."""


_roots: list[Path] = []


@contextmanager
def confined_to(root: Path) -> Iterator[None]:
    """While active, refuse to read files outside of a folder, and the environment.

    The files of a pull request may name any file of the machine, also by a symbolic link, and the
    review of it is published.
    """
    _roots.append(root.resolve())
    try:
        yield
    finally:
        _roots.pop()


def is_confined() -> bool:
    """Whether files are read within ``confined_to``."""
    return bool(_roots)


def read_text(path: Path) -> str:
    """Return the text of a file; raise ``SourceError`` if there is none."""
    if _roots and not path.resolve().is_relative_to(_roots[-1]):
        raise SourceError(f"{path}: got a file outside of the repository, wanted a file inside")
    try:
        READ_FILES[path.resolve()] = path.stat().st_mtime_ns
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise SourceError(f"{path}: got another encoding, wanted UTF-8") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise SourceError(f"{path}: {reason}") from None


def load_document(path: Path) -> Any:
    """Parse a JSON or YAML file; raise ``SourceError`` if it is neither."""
    return parse_document(read_text(path), str(path))


def parse_document(text: str, place: str) -> Any:
    """Parse a text. ``place``: the file's name, whose ending selects JSON or YAML.

    If a key occurs twice, its last value counts, as in SAM, and ``WARNINGS`` gets a line.
    """
    if place.endswith(JSON_ENDS):
        try:
            return json.loads(text, object_pairs_hook=lambda pairs: _json_object(pairs, place))
        except (ValueError, RecursionError) as error:
            raise SourceError(f"{place}: no JSON: {error}") from None
    try:
        return construct_yaml(compose_yaml(text, place), place)
    except _CONSTRUCTOR_ERRORS as error:
        raise SourceError(f"{place}: no YAML: {' '.join(str(error).split())}") from None


def compose_yaml(text: str, place: str) -> yaml.Node | None:
    """Return the nodes of a YAML text, with line numbers; None for an empty text."""
    try:
        node: yaml.Node | None = yaml.compose(text, Loader)
    except _CONSTRUCTOR_ERRORS as error:
        raise SourceError(f"{place}: no YAML: {' '.join(str(error).split())}") from None
    return node


def construct_yaml(node: yaml.Node | None, place: str) -> Any:
    """Return the document of a node."""
    if node is None:
        return None
    loader = _LenientLoader("")
    loader.place = place
    try:
        document = loader.construct_document(node)
    except _CONSTRUCTOR_ERRORS as error:
        raise SourceError(f"{place}: no YAML: {' '.join(str(error).split())}") from None
    check_size(document, place)
    return document


def check_size(document: Any, place: str) -> None:
    """Raise ``SourceError`` for a document that expands beyond its text, or contains itself."""
    waiting, count = [document], 0
    while waiting:
        value = waiting.pop()
        count += 1
        if count > _MOST_NODES:
            raise SourceError(f"{place}: got more values than {_MOST_NODES}, wanted fewer")
        if isinstance(value, dict):
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value


class _LenientLoader(Loader):
    """YAML loader that keeps the last of duplicate keys."""

    place = ""

    def repeat_key(self, key: yaml.ScalarNode) -> None:
        """Warn about a duplicate key."""
        _warn_of_repeated(f"{self.place}: line {key.start_mark.line + 1}", key.value)


def _json_object(pairs: list[tuple[str, Any]], place: str) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        names = [name for name, _ in pairs]
        for name in members:
            if names.count(name) > 1:
                _warn_of_repeated(place, name)
    return members


def _warn_of_repeated(place: str, key: str) -> None:
    WARNINGS[f"{place}: the key {key!r} stands twice; the last one counts"] = None


# -- shapes ----------------------------------------------------------------------------------------


def kind_of(value: Any) -> str:
    """Return the type of a value in the words of error messages."""
    return _KINDS.get(type(value), f"a {type(value).__name__}")


def as_object(value: Any, place: str) -> dict[str, Any]:
    """Return an object, {} for null; raise ``SourceError`` for other values."""
    if value is None or value == "":
        return {}
    if not isinstance(value, dict):
        raise SourceError(f"{place}: got {kind_of(value)}, wanted an object")
    return value


def as_list(value: Any, place: str) -> list[Any]:
    """Return a list, [] for null; raise ``SourceError`` for other values."""
    if value is None or value == "":
        return []
    if not isinstance(value, list):
        raise SourceError(f"{place}: got {kind_of(value)}, wanted a list")
    return value


def as_name(value: Any, place: str) -> str:
    """Return a name; raise ``SourceError`` unless it is a text or number."""
    if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
        raise SourceError(f"{place}: got {kind_of(value)}, wanted a name")
    return str(value)
