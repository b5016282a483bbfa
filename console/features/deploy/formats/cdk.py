"""Read the cloud assembly of ``cdk synth`` (``cdk.out``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from console.cli.documents import SourceError, as_list, as_object, load_document
from console.features.deploy.formats.cloudformation import open_template
from console.features.deploy.sources import SourceProject

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from console.cli.account import Account
    from console.features.deploy.parameters import Parameters

MANIFEST = "manifest.json"
OUTPUT = "cdk.out"
"""The folder of an assembly in a project of the CDK."""


def is_assembly(folder: Path) -> bool:
    """Return whether a folder is a cloud assembly."""
    path = folder / MANIFEST
    if not path.is_file():
        return False
    document = load_document(path)
    return isinstance(document, dict) and "artifacts" in document


def read_assembly(folder: Path, account: Account, parameters: Parameters) -> SourceProject:
    """Return the project of all stacks, including those of nested stages."""
    project = SourceProject()
    assets = _asset_files(folder)
    stages = list(_artifacts(folder, "cdk:cloud-assembly", "directoryName"))
    stacks = list(_artifacts(folder, "aws:cloudformation:stack", "templateFile"))
    if not stacks and not stages:
        raise SourceError(f"{folder / MANIFEST}: got no stack, wanted one")
    exports: dict[str, Callable[[], Any]] = {}
    readers = []
    for path, stack in stacks:
        with parameters.collect(str(path)):
            paths = _construct_paths(folder, stack)
            reader = open_template(path, account, parameters, assets.get, paths, exports)
            exports |= reader.exports()
            readers.append((path, reader))
    for path, reader in readers:
        with parameters.collect(str(path)):
            reader.read(project)
    for inside, _ in stages:
        with parameters.collect(str(inside)):
            project.add(read_assembly(inside, account, parameters))
    return project


def _artifacts(folder: Path, kind: str, key: str) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield the artifacts of a type, each with the path in one of its properties."""
    place = folder / MANIFEST
    listed = as_object(load_document(place).get("artifacts"), f"{place}: artifacts")
    for name, artifact in listed.items():
        about = as_object(artifact, f"{place}: artifacts.{name}")
        if about.get("type") == kind:
            properties = as_object(about.get("properties"), f"{place}: artifacts.{name}")
            if not isinstance(properties.get(key), str):
                raise SourceError(f"{place}: artifacts.{name}.properties: got no {key}, wanted one")
            yield folder / properties[key], about


def _construct_paths(folder: Path, stack: dict[str, Any]) -> dict[str, str]:
    """Return logical id -> construct path, from the manifest or a file beside it."""
    entries = dict(as_object(stack.get("metadata"), f"{folder / MANIFEST}: metadata"))
    metadata_file = stack.get("additionalMetadataFile")
    if isinstance(metadata_file, str) and (folder / metadata_file).is_file():
        entries |= as_object(load_document(folder / metadata_file), str(folder / metadata_file))
    return {
        str(entry["data"]): path.strip("/")
        for path, listed in entries.items()
        for entry in as_list(listed, f"{folder / MANIFEST}: {path}")
        if isinstance(entry, dict) and entry.get("type") == "aws:cdk:logicalId" and "data" in entry
    }


def _asset_files(folder: Path) -> dict[str, Path]:
    """Return S3 object key -> local file of the asset."""
    paths = {}
    for listing in sorted(folder.glob("*.assets.json")):
        files = as_object(load_document(listing), str(listing)).get("files")
        for name, entry in as_object(files, f"{listing}: files").items():
            asset = as_object(entry, f"{listing}: files.{name}")
            source = as_object(asset.get("source"), f"{listing}: files.{name}.source")
            places = as_object(asset.get("destinations"), f"{listing}: files.{name}.destinations")
            for destination in places.values():
                key = as_object(destination, f"{listing}: files.{name}").get("objectKey")
                if isinstance(key, str) and isinstance(source.get("path"), str):
                    paths[key] = folder / source["path"]
    return paths
