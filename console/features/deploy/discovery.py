"""Read the files and folders named on a command line, after detecting the format of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from console.cli.account import Account
from console.cli.documents import (
    JSON_ENDS,
    READ_FILES,
    WARNINGS,
    YAML_ENDS,
    SourceError,
    load_document,
)
from console.features.deploy.formats import asl, cdk, cloudformation, serverless, terraform
from console.features.deploy.parameters import Parameters, parse_parameters
from console.features.deploy.sources import SourceProject

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from console.features.deploy.sources import MachineSource

_LEFT_OUT = {"node_modules", "venv", cdk.OUTPUT, "dist", "build", "__pycache__"}
NO_DEFINITION = "got no definition, wanted NAME.asl.json, NAME.asl.yaml …"
_TEMPLATES = ("template.yaml", "template.yml", "template.json", "serverless.yml", "serverless.yaml")


def read_paths(paths: Sequence[Path], account: Account, parameters: Parameters) -> SourceProject:
    """Return the state machines of all files and folders. ``account``: fills placeholders of ARNs.

    Raise ``SourceError`` with a line for each value that is missing and each part that is wrong.
    """
    project = read_readable(paths, account, parameters)
    if not parameters.placeholders:
        _refuse_unread(parameters)
    parameters.check()
    return project


def read_machines(
    path: Path, params: Sequence[str], account: Account | None = None
) -> list[MachineSource]:
    """Return the state machines of a file or folder, with placeholders for missing values.

    ``params``: of ``--param``. Raise ``SourceError`` if there is no state machine.
    """
    parameters = Parameters(parse_parameters(list(params)), placeholders=True)
    machines = read_paths([path], account or Account(), parameters).machines
    if not machines:
        raise SourceError(f"{path}: got no state machine, wanted one")
    return machines


def read_readable(paths: Sequence[Path], account: Account, parameters: Parameters) -> SourceProject:
    """Read the files and folders as far as they are valid; ``parameters`` records the errors."""
    READ_FILES.clear()
    WARNINGS.clear()
    project = SourceProject()
    for path in paths:
        with parameters.collect(str(path)):
            project.add(_read_path(path, account, parameters))
    with parameters.collect("names"):
        _check_names(project)
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
    """Read a folder as a CDK assembly, else its project file, else all definitions below it."""
    if cdk.is_assembly(folder):
        return cdk.read_assembly(folder, account, parameters)
    for name in _TEMPLATES:
        if (folder / name).is_file():
            return _read_path(folder / name, account, parameters)
    files = [path for path in definition_files(folder) if is_source(path)]
    if not files and cdk.is_assembly(folder / cdk.OUTPUT):
        return cdk.read_assembly(folder / cdk.OUTPUT, account, parameters)
    if not files:
        raise SourceError(f"{folder}: {NO_DEFINITION}")
    project = SourceProject()
    # templates first: a definition named by a template must not be read again on its own
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


def is_source(path: Path) -> bool:
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
    first_place: dict[str, str] = {}
    for machine in project.machines:
        if other := first_place.get(machine.name):
            raise SourceError(
                f"{machine.place}: got the name {machine.name}, which {other} has, wanted another"
            )
        first_place[machine.name] = machine.place
