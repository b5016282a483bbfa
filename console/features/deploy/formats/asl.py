"""Read definition files: ``NAME.asl.json``, ``NAME.asl.yaml``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from console.cli.documents import (
    YAML_ENDS,
    SourceError,
    as_object,
    kind_of,
    parse_document,
    read_text,
)
from console.features.deploy.parameters import Parameters
from console.features.deploy.placeholders import Placeholders
from console.features.deploy.sources import MachineSource, SourceProject, definition_text

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from typing import Any

_PULLED = ("type", "endpoint", "stateMachineArn")
ENDS = (".asl.json", ".asl.yaml", ".asl.yml")


def machine_name(path: Path) -> str:
    """Return the state machine's name: the file's name without its endings."""
    for end in (*ENDS, ".json", *YAML_ENDS):
        if path.name.endswith(end):
            return path.name.removesuffix(end)
    return path.name


def definition_of_file(
    path: Path, parameters: Parameters, values: Mapping[str, Any] | None = None
) -> str:
    """Return a definition as JSON text with its placeholders filled. ``values``: for these.

    JSON stays as it is written: numbers keep their digits.
    """
    placeholders = Placeholders(parameters, str(path), values or {})
    if path.name.endswith(YAML_ENDS):
        document = placeholders.fill_yaml(read_text(path))
        if not isinstance(document, dict):
            raise SourceError(f"{path}: got {kind_of(document)}, wanted a definition")
        return definition_text(document, str(path))
    text = read_text(path)
    if not text.strip():
        raise SourceError(f"{path}: got an empty file, wanted a definition")
    return placeholders.fill(text)


def read_definition(path: Path, parameters: Parameters) -> SourceProject:
    """Return the state machine of a file."""
    text = definition_of_file(path, parameters)
    about = _pulled_settings(path)
    machine = MachineSource(
        machine_name(path),
        text,
        str(path),
        type=parameters.text("Type") or about.get("type", "STANDARD"),
        pulled_from=about.get("endpoint", ""),
        pulled_arn=about.get("stateMachineArn", ""),
        pattern=definition_of_file(path, Parameters({}, placeholders=True)),
    )
    return SourceProject([machine])


def _pulled_settings(path: Path) -> dict[str, str]:
    """Return the file that ``stateyard pull`` saved beside a definition, {} without one."""
    settings_file = path.with_name(f"{machine_name(path)}.machine.json")
    if not settings_file.is_file():
        return {}
    about = as_object(
        parse_document(read_text(settings_file), str(settings_file)), str(settings_file)
    )
    return {name: str(about[name]) for name in _PULLED if about.get(name)}
