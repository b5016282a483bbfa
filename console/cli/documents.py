"""Read JSON and YAML files, with the short tags of CloudFormation.

YAML is read as version 1.2 means it: ``on``, ``yes``, dates and numbers with a leading zero are
texts. A key that stands twice in an object is refused, since one of its values would be lost.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from pathlib import Path

YAML_ENDS = (".yaml", ".yml")
JSON_ENDS = (".json",)
READ_FILES: dict[Path, int] = {}
"""The files that were read, with the time of their last change then: ``--watch`` looks at them."""


class SourceError(Exception):
    """A file cannot be deployed. The message is one line: the file, the place, got and wanted."""


class _Loader(yaml.SafeLoader):
    """Safe YAML 1.2 with tags such as ``!Sub``, which become ``{"Fn::Sub": ...}``."""


_Loader.yaml_implicit_resolvers = {
    first: [
        (tag, pattern)
        for tag, pattern in resolvers
        if tag.rpartition(":")[2] not in ("bool", "int", "timestamp")
    ]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:bool", re.compile(r"true|True|TRUE|false|False|FALSE"), list("tTfF")
)
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:int", re.compile(r"[-+]?(0|[1-9][0-9]*)$"), list("-+0123456789")
)


def _construct_object(loader: _Loader, node: yaml.MappingNode) -> dict[Any, Any]:
    seen = set()
    for key, _ in node.value:  # before ``<<`` adds keys that the object may have, too
        if isinstance(key, yaml.ScalarNode) and key.value in seen:
            text = f"the key {key.value!r} stands twice"
            raise yaml.constructor.ConstructorError(None, None, text, key.start_mark)
        seen.add(key.value if isinstance(key, yaml.ScalarNode) else None)
    return dict(loader.construct_mapping(node, deep=True))


def _construct_tag(loader: _Loader, suffix: str, node: yaml.Node) -> dict[str, Any]:
    value: Any
    if isinstance(node, yaml.ScalarNode):
        value = loader.construct_scalar(node)
    elif isinstance(node, yaml.SequenceNode):
        value = loader.construct_sequence(node, deep=True)
    else:
        value = loader.construct_mapping(node, deep=True)  # type: ignore[arg-type]
    if suffix in ("Ref", "Condition"):
        return {suffix: value}
    if suffix == "GetAtt" and isinstance(value, str):
        value = value.split(".", 1)
    return {f"Fn::{suffix}": value}


_Loader.add_constructor("tag:yaml.org,2002:map", _construct_object)
_Loader.add_multi_constructor("!", _construct_tag)


def read_text(path: Path) -> str:
    """Return the text of a file; raise ``SourceError`` if there is none."""
    try:
        READ_FILES[path.resolve()] = path.stat().st_mtime_ns
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise SourceError(f"{path}: {reason}") from None


def load_document(path: Path) -> Any:
    """Return what a JSON or YAML file says; raise ``SourceError`` if it is neither."""
    return parse_document(read_text(path), str(path))


def parse_document(text: str, place: str) -> Any:
    """Return what a text says. ``place``: the file's name, which tells JSON from YAML."""
    if place.endswith(JSON_ENDS):
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as error:
            raise SourceError(f"{place}: no JSON: {error}") from None
    try:
        return yaml.load(text, _Loader)  # noqa: S506 - a safe loader with tags of its own
    except (yaml.YAMLError, RecursionError) as error:
        raise SourceError(f"{place}: no YAML: {' '.join(str(error).split())}") from None


def substitute_placeholders(text: str, values: dict[str, str]) -> str:
    """Replace ``${Name}`` by its value, where there is one."""
    return re.sub(r"\$\{([\w.:]+)\}", lambda match: values.get(match[1], match[0]), text)


def compose_yaml(text: str) -> yaml.Node | None:
    """Return the nodes of a YAML text, which know their lines; None for an empty one."""
    node: yaml.Node | None = yaml.compose(text, _Loader)
    return node
