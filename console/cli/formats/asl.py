"""Definitions in files of their own: ``NAME.asl.json``, ``NAME.asl.yaml``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from console.cli.documents import YAML_ENDS, parse_document, read_text, substitute_placeholders
from console.cli.sources import MachineSource, SourceProject, definition_text

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_PULLED = ("type", "endpoint", "stateMachineArn")
ENDS = (".asl.json", ".asl.yaml", ".asl.yml")


def machine_name(path: Path) -> str:
    """Return the name of the state machine of a file: its own without the ends."""
    for end in (*ENDS, ".json", *YAML_ENDS):
        if path.name.endswith(end):
            return path.name.removesuffix(end)
    return path.name


def definition_of_file(path: Path, values: Mapping[str, str]) -> str:
    """Return a definition as JSON text, its ``${placeholders}`` replaced by values that are known.

    JSON stays as it is written: numbers keep their digits.
    """
    text = substitute_placeholders(read_text(path), dict(values))
    if path.name.endswith(YAML_ENDS):
        return definition_text(parse_document(text, str(path)))
    return text


def read_definition(path: Path, values: Mapping[str, str]) -> SourceProject:
    """Return the state machine of a file."""
    text = definition_of_file(path, values)
    about = _pulled(path)
    machine = MachineSource(
        machine_name(path),
        text,
        str(path),
        type=values.get("Type") or about.get("type", "STANDARD"),
        pulled_from=about.get("endpoint", ""),
        pulled_arn=about.get("stateMachineArn", ""),
    )
    return SourceProject([machine])


def _pulled(path: Path) -> dict[str, str]:
    """Return what ``stateyard pull`` has written beside a definition, {} if it is not there."""
    beside = path.with_name(f"{machine_name(path)}.machine.json")
    if not beside.is_file():
        return {}
    about = parse_document(read_text(beside), str(beside))
    known = about if isinstance(about, dict) else {}
    return {name: str(known[name]) for name in _PULLED if known.get(name)}
