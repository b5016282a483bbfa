"""Lint the definitions in files, with the placeholders of templates taken into account."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import yaml

import engine
from console.cli.account import Account
from console.cli.documents import (
    YAML_ENDS,
    SourceError,
    construct_yaml,
    parse_document,
    read_text,
)
from console.features.deploy.discovery import definition_files, is_definition, is_source, read_paths
from console.features.deploy.formats import asl
from console.features.deploy.parameters import Parameters
from console.features.deploy.placeholders import Placeholders
from console.features.deploy.sources import definition_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

_MISPLACED = re.compile(r"Field '(Retry|Catch)' is not supported")
_PLACEHOLDER = re.compile(r"\$\{[^{}]+\}|\{\{resolve:[^{}]+\}\}")
_RESOURCE = re.compile(r'("Resource"\s*:\s*")(?:\$\{[^{}"]+\}|\{\{resolve:[^{}"]+\}\})(?=")')
_FUNCTION = "arn:aws:lambda:us-east-1:123456789012:function:placeholder"
_BARE = re.compile(r'"(?:[^"\\]|\\.)*"|\$\{[^{}"\s]+\}')


def lint_path(
    path: Path, kind: str, values: Mapping[str, str]
) -> Iterator[tuple[str, Sequence[Any]]]:
    """Yield name and problems of each definition in a file or folder.

    Raise ``SourceError`` for a file that cannot be read.
    """
    if path.is_dir() and not _is_project(path):
        files = [file for file in definition_files(path) if is_source(file)]
        for file in files:
            yield from lint_path(file, kind, values)
        if files:
            return  # else it may have the output of the CDK
    if path.is_file() and _is_alone(path):
        yield str(path), lint_text(read_text(path), str(path), kind, values)
        return
    parameters = Parameters(values, placeholders=True)
    for machine in read_paths([path], Account(), parameters).machines:
        yield machine.place, lint_definition(machine.definition, machine.type)


def lint_definition(text: str, kind: str) -> list[Any]:
    """Return the problems of a definition in JSON that may have placeholders."""
    text = without_bare_placeholders(text)
    return _known_problems(engine.check(text, kind), _parsed(text))


def lint_text(text: str, name: str, kind: str, values: Mapping[str, str]) -> Sequence[Any]:
    """Return the problems of a definition. ``name``: its ending selects YAML or JSON."""
    placeholders = Placeholders(Parameters(values, placeholders=True), name)
    if not name.endswith(YAML_ENDS):
        return lint_definition(placeholders.fill(text), kind)
    root = placeholders.filled_yaml(text)
    document = construct_yaml(root, name)
    problems = _known_problems(engine.check(definition_text(document, name), kind), document)
    return [_at_yaml(problem, root, document) for problem in problems]


def _is_project(folder: Path) -> bool:
    return any((folder / name).is_file() for name in ("manifest.json", "template.yaml",
        "template.yml", "template.json", "serverless.yml", "serverless.yaml"))  # fmt: skip


def _is_alone(path: Path) -> bool:
    """Whether a file is a definition, or unparsable (the check then reports that)."""
    if path.name.endswith(asl.ENDS):
        return True
    try:
        document = parse_document(read_text(path), str(path))
    except SourceError:
        return not path.name.endswith(YAML_ENDS)
    return (
        is_definition(document)
        or not isinstance(document, dict)
        or not ({"Resources", "stepFunctions", "format_version"} & document.keys())
    )


def without_bare_placeholders(text: str) -> str:
    """Replace each placeholder outside of a text by a number of the same length."""
    return _BARE.sub(
        lambda match: match[0] if match[0].startswith('"') else "1".ljust(len(match[0])), text
    )


def with_resources(text: str) -> str:
    """Put a function where a placeholder without a value stands for the Resource of a Task."""
    return _RESOURCE.sub(rf"\1{_FUNCTION}", without_bare_placeholders(text))


def quoted_placeholders(text: str) -> str:
    """Put each placeholder outside of a text into quotes."""
    return _BARE.sub(
        lambda match: match[0] if match[0].startswith('"') else json.dumps(match[0]), text
    )


def _known_problems(problems: Sequence[Any], document: Any) -> list[Any]:
    """Drop problems of values that are placeholders; explain the others."""
    return [
        _explain_problem(problem)
        for problem in problems
        if not _is_placeholder(_value_at(document, _keys(problem.location, document)))
    ]


def _explain_problem(problem: Any) -> Any:
    """Return a problem; a misplaced Retry or Catch gets a hint to its proper place."""
    misplaced = _MISPLACED.fullmatch(problem.message)
    name = misplaced[1] if misplaced else problem.location.rpartition("/")[2]
    in_states = problem.location.endswith(f"/States/{name}") and name in ("Retry", "Catch")
    if not misplaced and not in_states:
        return problem
    hint = f"{name} belongs inside the Task, Parallel or Map state that it is for"
    return replace(problem, message=f"{problem.message}: {hint}")


def _is_placeholder(value: Any) -> bool:
    return isinstance(value, str) and _PLACEHOLDER.search(value) is not None


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _keys(location: str, document: Any) -> list[Any]:
    """Return the keys and indexes of a location such as ``/States/A/Branches[0]/StartAt``."""
    keys: list[Any] = []
    rest = location
    while rest:
        number = re.match(r"\[(\d+)\]", rest)
        if number:
            key: Any = int(number[1])
            rest = rest[number.end() :]
        else:
            inside = [name for name in _names(document) if _begins(rest, name)]
            if not inside:
                break
            key = max(inside, key=len)
            rest = rest[len(key) + 1 :]
        keys.append(key)
        document = _value_at(document, [key])
    return keys


def _begins(rest: str, name: str) -> bool:
    return rest.startswith("/" + name) and rest[len(name) + 1 : len(name) + 2] in ("", "/", "[")


def _names(document: Any) -> list[str]:
    return [str(name) for name in document] if isinstance(document, dict) else []


def _value_at(document: Any, keys: Sequence[Any]) -> Any:
    for key in keys:
        try:
            document = document[key]
        except (LookupError, TypeError):
            return None
    return document


def _at_yaml(problem: Any, root: yaml.Node | None, document: Any) -> Any:
    """Return a problem with its line in the YAML file, not in the JSON made from it."""
    node: Any = root
    for key in _keys(problem.location, document):
        if isinstance(node, yaml.SequenceNode) and isinstance(key, int):
            node = node.value[key]
        elif isinstance(node, yaml.MappingNode):
            node = next((value for name, value in node.value if name.value == key), node)
    if node is None:
        return replace(problem, line=None, column=None)
    return replace(problem, line=node.start_mark.line + 1, column=node.start_mark.column + 1)
