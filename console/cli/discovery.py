"""Detect the format of a path: definition, template, service, cloud assembly, or folder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from console.cli.documents import (
    JSON_ENDS,
    READ_FILES,
    WARNINGS,
    YAML_ENDS,
    SourceError,
    load_document,
)
from console.cli.formats import asl, cdk, cloudformation, serverless, terraform
from console.cli.sources import SourceProject

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from console.cli.parameters import Parameters
    from console.cli.sources import Account

_LEFT_OUT = {"node_modules", "venv", "cdk.out", "dist", "build", "__pycache__"}
_TEMPLATES = ("template.yaml", "template.yml", "template.json", "serverless.yml", "serverless.yaml")


def read_paths(paths: Sequence[Path], account: Account, parameters: Parameters) -> SourceProject:
    """Read all files and folders into one project.

    Raise ``SourceError`` with a line for each value that is missing and each part that is wrong.
    """
    READ_FILES.clear()
    WARNINGS.clear()
    project = SourceProject()
    for path in paths:
        with parameters.collect(str(path)):
            project.add(_read_path(path, account, parameters))
    with parameters.collect("names"):
        _check_names(project)
    if not parameters.placeholders:
        _refuse_unread(parameters)
    parameters.check()
    return project


def _refuse_unread(parameters: Parameters) -> None:
    """Raise an error for a ``--param`` name that no file uses: probably a typo."""
    names = parameters.unread()
    texts = [file.read_text(encoding="utf-8", errors="replace") for file in READ_FILES if names]
    for name in names:
        if not any(all(part in text for part in name.split(".")) for text in texts):
            parameters.refuse(SourceError(f"--param {name}: got a value that no file asks for"))


def _read_path(path: Path, account: Account, parameters: Parameters) -> SourceProject:
    if path.is_dir():
        return _read_folder(path, account, parameters)
    if path.name.endswith(asl.ENDS):
        return asl.read_definition(path, parameters)
    if path.name == cdk.MANIFEST and cdk.is_assembly(path.parent):
        return cdk.read_assembly(path.parent, account, parameters)
    document = load_document(path)
    if cloudformation.is_template(document):
        return cloudformation.read_template(path, account, parameters)
    if serverless.is_service(document):
        return serverless.read_service(path, account, parameters)
    if terraform.is_terraform(document):
        return terraform.read_terraform(document, str(path), account, parameters)
    if is_definition(document):
        return asl.read_definition(path, parameters)
    raise SourceError(
        f"{path}: got neither States nor Resources nor stepFunctions, wanted a definition, a "
        "template, a service, or what `terraform show -json` prints"
    )


def _read_folder(folder: Path, account: Account, parameters: Parameters) -> SourceProject:
    """Read an assembly, else the project file of a folder, else all definitions below it."""
    if cdk.is_assembly(folder):
        return cdk.read_assembly(folder, account, parameters)
    for name in _TEMPLATES:
        if (folder / name).is_file():
            return _read_path(folder / name, account, parameters)
    files = [path for path in definition_files(folder) if _is_source(path)]
    if not files:
        raise SourceError(f"{folder}: got no definition, wanted NAME.asl.json, NAME.asl.yaml …")
    project = SourceProject()
    # templates first: a definition that one of them names is not read once more by itself
    for path in sorted(files, key=lambda path: path.name.endswith(asl.ENDS)):
        if not (path.name.endswith(asl.ENDS) and path.resolve() in READ_FILES):
            with parameters.collect(str(path)):
                project.add(_read_path(path, account, parameters))
    return project


def definition_files(folder: Path) -> list[Path]:
    """Return the JSON and YAML files below a folder, sorted."""
    return [
        path
        for path in sorted(folder.rglob("*"))
        if path.name.endswith((*JSON_ENDS, *YAML_ENDS))
        and path.is_file()
        and not any(
            part in _LEFT_OUT or part.startswith(".") for part in path.relative_to(folder).parts
        )
    ]


def _is_source(path: Path) -> bool:
    """Whether a file of a folder is to be read, by its name or content."""
    if path.name.endswith(asl.ENDS):
        return True
    try:
        document = load_document(path)
    except SourceError:
        return False  # a folder has files of many kinds
    return is_definition(document) or cloudformation.is_template(document)


def is_definition(document: Any) -> bool:
    """Whether a document is a state machine definition."""
    return isinstance(document, dict) and "States" in document and "StartAt" in document


def _check_names(project: SourceProject) -> None:
    seen: dict[str, str] = {}
    for machine in project.machines:
        if machine.name in seen:
            raise SourceError(
                f"{machine.place}: got the name {machine.name}, which {seen[machine.name]} has, "
                "wanted another"
            )
        seen[machine.name] = machine.place
