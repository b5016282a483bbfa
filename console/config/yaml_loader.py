"""Load YAML 1.2 with CloudFormation's short tags, such as ``!Sub``.

``on``, ``yes``, dates and numbers with a leading zero are texts. Duplicate keys of an object are
refused, because one value would be lost; a subclass may take the last one instead.
"""

from __future__ import annotations

import re
from typing import Any

import yaml

_DEEPEST = 200


class Loader(yaml.SafeLoader):
    """Safe YAML 1.2 with tags such as ``!Sub``, which become ``{"Fn::Sub": ...}``."""

    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """Return the next node; refuse too deep nesting, which takes minutes to read."""
        self.depth += 1
        if self.depth > _DEEPEST:
            text = f"more than {_DEEPEST} lists and objects in each other"
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise yaml.composer.ComposerError(None, None, text, mark)
        try:
            node: yaml.Node | None = super().compose_node(parent, index)
            return node
        finally:
            self.depth -= 1

    def repeat_key(self, key: yaml.ScalarNode) -> None:
        """Refuse a duplicate key."""
        text = f"the key {key.value!r} stands twice"
        raise yaml.constructor.ConstructorError(None, None, text, key.start_mark)


Loader.yaml_implicit_resolvers = {
    first: [
        (tag, pattern)
        for tag, pattern in resolvers
        if tag.rpartition(":")[2] not in ("bool", "int", "timestamp")
    ]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
Loader.add_implicit_resolver(
    "tag:yaml.org,2002:bool", re.compile(r"true|True|TRUE|false|False|FALSE"), list("tTfF")
)
Loader.add_implicit_resolver(
    "tag:yaml.org,2002:int", re.compile(r"[-+]?(0|[1-9][0-9]*)$"), list("-+0123456789")
)


def _construct_object(loader: Loader, node: yaml.MappingNode) -> dict[Any, Any]:
    seen = set()
    for key, _ in node.value:  # before ``<<`` adds keys that the object may have, too
        if isinstance(key, yaml.ScalarNode) and key.value in seen:
            loader.repeat_key(key)
        seen.add(key.value if isinstance(key, yaml.ScalarNode) else None)
    return dict(loader.construct_mapping(node, deep=True))


def _construct_tag(loader: Loader, suffix: str, node: yaml.Node) -> dict[str, Any]:
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


Loader.add_constructor("tag:yaml.org,2002:map", _construct_object)
Loader.add_multi_constructor("!", _construct_tag)
