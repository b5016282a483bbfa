"""The folder that ``cdk synth`` writes: ``cdk.out``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from console.cli.documents import SourceError, load_document
from console.cli.formats.cloudformation import read_template
from console.cli.sources import SourceProject

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from console.cli.sources import Account

MANIFEST = "manifest.json"


def is_assembly(folder: Path) -> bool:
    """Tell whether a folder is a cloud assembly."""
    return (folder / MANIFEST).is_file() and "artifacts" in load_document(folder / MANIFEST)


def read_assembly(folder: Path, account: Account, given: Mapping[str, str]) -> SourceProject:
    """Return what the stacks of an assembly have, those of its stages included."""
    project = SourceProject()
    assets = _asset_files(folder)
    stages = list(_artifacts(folder, "cdk:cloud-assembly"))
    stacks = list(_artifacts(folder, "aws:cloudformation:stack"))
    if not stacks and not stages:
        raise SourceError(f"{folder / MANIFEST}: got no stack, wanted one")
    for stack in stacks:
        path = folder / stack["properties"]["templateFile"]
        paths = _construct_paths(folder, stack)
        project.add(read_template(path, account, given, assets.get, paths))
    for stage in stages:
        inside = folder / stage["properties"]["directoryName"]
        project.add(read_assembly(inside, account, given))
    return project


def _artifacts(folder: Path, kind: str) -> Iterator[dict[str, Any]]:
    for artifact in load_document(folder / MANIFEST).get("artifacts", {}).values():
        if artifact.get("type") == kind:
            yield {"properties": {}, **artifact}


def _construct_paths(folder: Path, stack: dict[str, Any]) -> dict[str, str]:
    """Return logical id -> path of the construct: in the manifest, or in a file beside it."""
    entries = dict(stack.get("metadata") or {})
    beside = stack.get("additionalMetadataFile")
    if beside and (folder / beside).is_file():
        entries |= load_document(folder / beside)
    return {
        entry["data"]: path.strip("/")
        for path, listed in entries.items()
        for entry in listed
        if entry.get("type") == "aws:cdk:logicalId"
    }


def _asset_files(folder: Path) -> dict[str, Path]:
    """Return key of an object in S3 -> the file that would be uploaded to it."""
    found = {}
    for listing in folder.glob("*.assets.json"):
        for asset in load_document(listing).get("files", {}).values():
            for destination in asset.get("destinations", {}).values():
                found[destination["objectKey"]] = folder / asset["source"]["path"]
    return found
