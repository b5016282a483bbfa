"""Fill in the placeholders of definitions, so that none is deployed unfilled.

Placeholders are ``${Name}`` (substitutions of SAM and CloudFormation, Terraform's templates, tokens
of the CDK, variables of the Serverless Framework), ``{{resolve:ssm:/name}}`` (dynamic references of
CloudFormation), and ``#{AWS::Region}`` (a plugin of the Serverless Framework).
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import yaml

from console.cli.documents import (
    MOST_CHARACTERS,
    SourceError,
    compose_yaml,
    construct_yaml,
)
from console.config.yaml_loader import Loader
from console.features.deploy.parameters import text_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from console.features.deploy.parameters import Parameters

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|\$\{[^{}"\s]+\}|\{\{resolve:[^{}]+\}\}')
_MARKER = re.compile(r"\$\{([^{}]+)\}|\{\{resolve:([^{}]+)\}\}|#\{(AWS::\w+)\}")
_IN_JSONATA = re.compile(r"[A-Za-z_][\w.]*|AWS::\w+")
"""Names of markers inside ``{% %}``, where ``${ a: b }`` is an object of JSONata."""
_SOURCE = re.compile(r"([A-Za-z][\w-]*)(\([^:]*\))?(?::(?!:|//)(.+))?", re.DOTALL)
REFERENCE = re.compile(r"\{\{resolve:([^{}]+)\}\}")


def reference_names(reference: str) -> tuple[str, str]:
    """Return the ``--param`` names of ``ssm:/a/b``: with and without the service."""
    return reference, reference.partition(":")[2] or reference


@dataclass
class Placeholders:
    """The values of a definition's placeholders.

    ``values``: by name, such as DefinitionSubstitutions; ``--param`` gives the others.
    """

    parameters: Parameters
    place: str
    values: Mapping[str, Any] = field(default_factory=dict)
    _characters: int = 0

    def fill(self, text: str, *, is_file: bool = True) -> str:
        """Return a JSON definition with its placeholders filled; other text is unchanged.

        ``is_file``: lines count, in what is missing.
        """

        def replace(match: re.Match[str]) -> str:
            if match[0].startswith('"') and not _may_have_markers(match[0]):
                return match[0]
            place = self.place
            if is_file:
                place += f": line {text.count(chr(10), 0, match.start()) + 1}"
            return self._token(match[0], place)

        return _TOKEN.sub(replace, text)

    def fill_yaml(self, text: str) -> Any:
        """Return the document of a YAML definition with its placeholders filled."""
        return construct_yaml(self.filled_yaml(text), self.place)

    def filled_yaml(self, text: str) -> yaml.Node | None:
        """Return the nodes of a YAML definition, with line numbers."""
        root = compose_yaml(text, self.place)
        return None if root is None else self._node(root, set())

    def fill_text(self, text: str, place: str) -> str:
        """Return a text with its placeholders filled."""
        jsonata = text.lstrip().startswith("{%")

        def replace(match: re.Match[str]) -> str:
            name = match[1]
            unknown = name is not None and name not in self.values
            if jsonata and unknown and not _IN_JSONATA.fullmatch(name):
                return match[0]
            return self._text(match, place)

        return _MARKER.sub(replace, text)

    def _token(self, token: str, place: str) -> str:
        if not token.startswith('"'):
            match = _MARKER.fullmatch(token)
            if match is None:
                return token
            value = self._value(match, place)
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            return self._count_characters(text, match, place)
        if not _may_have_markers(token):
            return token
        try:
            text = json.loads(token)
        except ValueError:  # no JSON, as the server will say
            return token
        filled = self.fill_text(text, place)
        return token if filled == text else json.dumps(filled, ensure_ascii=False)

    def _node(self, node: yaml.Node, seen: set[int]) -> yaml.Node:
        """Return a YAML node with its scalars filled; ``seen``: nodes repeated by aliases."""
        if id(node) in seen:
            return node
        seen.add(id(node))
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node)
        if isinstance(node, yaml.SequenceNode):
            node.value = [self._node(part, seen) for part in node.value]
        elif isinstance(node, yaml.MappingNode):
            node.value = [
                (self._node(key, seen), self._node(part, seen)) for key, part in node.value
            ]
        return node

    def _scalar(self, node: yaml.ScalarNode) -> yaml.Node:
        """Fill a scalar; an unquoted placeholder takes its value's type."""
        place = f"{self.place}: line {node.start_mark.line + 1}"
        match = _MARKER.fullmatch(node.value)
        if node.style is not None or match is None:
            node.value = self.fill_text(node.value, place)
            return node
        value = self._value(match, place)
        if not isinstance(value, str):
            return yaml.compose(json.dumps(value, ensure_ascii=False), Loader) or node
        node.value = value
        node.tag = Loader("").resolve(yaml.ScalarNode, value, (True, False))  # type: ignore[no-untyped-call]
        return node

    def _text(self, match: re.Match[str], place: str) -> str:
        names = _names(match)
        value = next((self.values[name] for name in names if name in self.values), None)
        try:
            text = self._asked_text(match, place) if value is None else text_of(value)
        except ValueError as error:
            raise SourceError(f"{place}: {match[0]}: {error}") from None
        return self._count_characters(text, match, place)

    def _count_characters(self, text: str, match: re.Match[str], place: str) -> str:
        """Return a text; raise ``SourceError`` before a small template expands to gigabytes."""
        self._characters += len(text)
        if self._characters > MOST_CHARACTERS:
            message = f"got a text that grows, wanted at most {MOST_CHARACTERS} characters"
            raise SourceError(f"{place}: {match[0]}: {message}")
        return text

    def _asked_text(self, match: re.Match[str], place: str) -> str:
        value = self.parameters.ask(place, match[0], *_names(match))
        if isinstance(value, list | dict):  # a text keeps its spelling
            return self.parameters.text(*_names(match)) or ""
        return text_of(value)

    def _value(self, match: re.Match[str], place: str) -> Any:
        names = _names(match)
        for name in names:
            if name in self.values:
                return self.values[name]
        return self.parameters.ask(place, match[0], *names)


def _may_have_markers(text: str) -> bool:
    return "${" in text or "{{resolve:" in text or "#{AWS::" in text


def _names(match: re.Match[str]) -> tuple[str, ...]:
    if match[2]:
        return reference_names(match[2])
    name = (match[1] or match[3]).strip()
    return source_names(name.partition(",")[0].strip())


def source_names(part: str) -> tuple[str, ...]:
    """Return the ``--param`` names of ``source(options):address``: with and without the source."""
    match = _SOURCE.fullmatch(part)
    if match is None or match[1] in ("file", "strToBool") or not match[3]:
        return (part,)
    return tuple(dict.fromkeys((match[3], part, f"{match[1]}:{match[3]}")))
