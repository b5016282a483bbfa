"""Parse and write a project's settings as a YAML document.

Parsing is strict: YAML 1.2 without aliases, anchors, tags and duplicate keys, of limited size and
depth. ``Document.line`` finds the line of a key for error messages.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import yaml

from console.config.yaml_loader import Loader
from console.errors import ValidationException

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

LARGEST = 1_000_000
"""Maximum length of a document in characters."""
Place = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Document:
    """A parsed document. ``lines``: the line of each key and list item, by its path."""

    sections: dict[str, Any]
    lines: Mapping[Place, int]

    def line(self, place: Sequence[str | int]) -> int:
        """Return the line of a path, or of its nearest parent in the text."""
        place = tuple(place)
        while place not in self.lines and place:
            place = place[:-1]
        return self.lines.get(place, 1)

    def refusal(self, place: Sequence[str | int], words: str) -> ValidationException:
        """Return the error for the value at a path."""
        return ValidationException(f"line {self.line(place)}: {words}")


class _StrictLoader(Loader):
    """YAML loader that refuses aliases, and values that JSON does not have."""

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """Return the next node."""
        event = self.peek_event()  # type: ignore[no-untyped-call]
        name = getattr(event, "anchor", None)
        if isinstance(event, yaml.AliasEvent):
            raise _refused(f"the alias *{name}: aliases are refused", event.start_mark)
        if name is not None:
            raise _refused(f"the anchor &{name}: anchors are refused", event.start_mark)
        if getattr(event, "tag", None) is not None:
            raise _refused(f"the tag {event.tag}: tags are refused", event.start_mark)
        return super().compose_node(parent, index)


class _PlainDumper(yaml.SafeDumper):
    """Writes each value in full, without aliases."""

    def ignore_aliases(self, data: Any) -> bool:
        """Return True: write no aliases."""
        del data
        return True


def write_document(sections: Mapping[str, Any], project: str) -> str:
    """Return sections as YAML for ``read_document``."""
    text = yaml.dump(
        dict(sections), Dumper=_PlainDumper, sort_keys=False, allow_unicode=True, width=120
    )
    return f"# Settings of the project {project}. Secrets are not in this file.\n{text}"


def read_document(text: str) -> Document:
    """Return a document; raise ValidationException with the line of an error."""
    if len(text) > LARGEST:
        raise ValidationException(
            f"The file has {len(text)} characters. At most {LARGEST} are accepted."
        )
    try:
        loader = _StrictLoader(text)
        node = loader.get_single_node()
        value = loader.construct_document(node) if node is not None else {}
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark is not None else 1
        raise ValidationException(f"line {line}: {error.problem or error.context}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ValidationException(f"The file is no YAML: {' '.join(str(error).split())}") from None
    if not isinstance(value, dict):
        raise ValidationException("line 1: the file must have sections such as quotas")
    lines: dict[Place, int] = {}
    if node is not None:
        _note_lines(node, (), lines)
    document = Document(value, lines)
    _check_json(document)
    return document


def _note_lines(node: yaml.Node, place: Place, lines: dict[Place, int]) -> None:
    """Record the lines of keys and items; raise ValidationException for a key that is no text."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            line = key.start_mark.line + 1
            if key.tag != "tag:yaml.org,2002:str":
                key_text = key.value if isinstance(key.value, str) else "a list or an object"
                raise ValidationException(
                    f"line {line}: the key {key_text} is no text: put it in quotes"
                )
            lines[(*place, key.value)] = line
            _note_lines(value, (*place, key.value), lines)
    elif isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            lines[(*place, index)] = item.start_mark.line + 1
            _note_lines(item, (*place, index), lines)


def _check_json(document: Document) -> None:
    """Raise ValidationException for a value that JSON does not have."""
    try:
        json.dumps(document.sections, allow_nan=False, ensure_ascii=False).encode()
    except (TypeError, ValueError):
        raise ValidationException(
            "The file has a value that JSON does not have: infinity, no number, or half a character"
        ) from None


def _refused(words: str, mark: Any) -> yaml.composer.ComposerError:
    return yaml.composer.ComposerError(None, None, words, mark)
