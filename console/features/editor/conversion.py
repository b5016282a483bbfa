"""Convert text pasted into the editor, YAML or a template, to a definition in JSON.

Graph, validation and API need JSON. Recognized are YAML definitions, and templates of
CloudFormation, SAM or the CDK with state machines.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import yaml

from console import arns
from console.cli.account import Account
from console.cli.documents import SourceError
from console.config.yaml_loader import Loader
from console.features.deploy.formats.cloudformation import MACHINES, is_template, read_machine
from console.features.editor.templates import opened_text

if TYPE_CHECKING:
    from console.features.deploy.sources import MachineSource
    from console.web.core.scope import Scope

MOST_CHARACTERS = 262_144
"""Maximum length of a text to convert: longer texts take seconds to parse."""
DEEPEST = 500
"""Maximum nesting depth of YAML, and of JSON: the time for each further level grows.

50,000 brackets, in 50 KB, took minutes.
"""
YAML = "yaml"
"""The choice of ``convert_text`` for a YAML definition instead of a template's state machine."""
_FIRST_KEYS = ("Comment:", "QueryLanguage:", "Resources:", "StartAt:", "States:", "Transform:")
"""Beginnings of lines in a text that is meant as YAML."""


@dataclass(frozen=True, slots=True)
class YamlError:
    """The syntax error of a YAML text; line and column count from 1."""

    message: str
    line: int
    column: int


@dataclass(frozen=True, slots=True)
class ForeignText:
    """A text in the editor that is not a JSON definition: YAML, or a template.

    ``machines``: the logical ids of a template's state machines; ``error``: the text is meant as
    YAML but invalid.
    """

    is_yaml: bool = False
    machines: tuple[str, ...] = ()
    error: YamlError | None = None

    @property
    def is_convertible(self) -> bool:
        """Return whether the text can be converted to a definition."""
        return self.is_yaml or bool(self.machines)


@dataclass(frozen=True, slots=True)
class ConvertedText:
    """A definition in JSON; ``machine``: its state machine in a template, with role and tags."""

    text: str
    machine: MachineSource | None = None


def examine_text(text: str) -> ForeignText:
    """Return the kind of a text that is no JSON definition: YAML, or a template."""
    try:
        document = _load_document(text)
    except yaml.MarkedYAMLError as error:
        lines = text.splitlines()
        mark = error.problem_mark
        if mark is None or not any(line.startswith(_FIRST_KEYS) for line in lines):
            return ForeignText()
        return ForeignText(error=YamlError(error.problem or "", mark.line + 1, mark.column + 1))
    except (yaml.YAMLError, RecursionError, ValueError):
        return ForeignText()
    if is_template(document):
        return ForeignText(machines=_machines_of(document))
    return ForeignText(is_yaml=_definition_of_yaml(text, document) is not None)


def convert_text(text: str, choice: str, account: Account) -> ConvertedText | None:
    """Return the definition in a text, None if there is none.

    ``choice``: ``YAML``, or the logical id of a state machine. Raise ``SourceError`` if its
    definition is not in the template.
    """
    try:
        document = _load_document(text)
        if choice == YAML:
            definition = _definition_of_yaml(text, document)
            return ConvertedText(definition) if definition else None
        if not is_template(document) or choice not in _machines_of(document):
            return None
        machine = read_machine(document, choice, account)
        return ConvertedText(opened_text(machine.definition), machine)
    except (AttributeError, LookupError, TypeError) as error:
        raise SourceError(f"The template has no state machine at {choice}: {error}") from None
    except (yaml.YAMLError, RecursionError, ValueError):
        return None


def account_of(scope: Scope) -> Account:
    """Return the account and region for the ARNs of a template."""
    return Account(scope.project.account_id, scope.region, arns.partition_of(scope.region))


def _load_document(text: str) -> Any:
    """Parse a text as JSON or YAML; None if it is too long, too deep or invalid.

    YAML with ``*`` aliases is refused: a few lines of them can expand to gigabytes.
    """
    if len(text) > MOST_CHARACTERS or not text.strip():
        return None
    if text.lstrip()[0] in '{["':
        return json.loads(text)
    return yaml.load(text, Loader) if _is_modest(text) else None  # noqa: S506 - a safe loader


def _is_modest(text: str) -> bool:
    """Return whether a YAML text is neither too deep nor has aliases."""
    depth = 0
    for event in yaml.parse(text, Loader):
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST or isinstance(event, yaml.AliasEvent):
            return False
    return True


def _machines_of(template: dict[str, Any]) -> tuple[str, ...]:
    resources = template["Resources"].items()
    return tuple(
        name
        for name, resource in resources
        if isinstance(name, str) and isinstance(resource, dict) and resource.get("Type") in MACHINES
    )


def _definition_of_yaml(text: str, document: Any) -> str | None:
    if text.lstrip()[:1] == "{" or not isinstance(document, dict) or "States" not in document:
        return None
    try:
        return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)
    except (RecursionError, TypeError, ValueError):
        return None
