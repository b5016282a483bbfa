"""Start an execution with the faults of a file, by the server's own HTTP API."""

from __future__ import annotations

import argparse
import json
import secrets
import uuid
from typing import TYPE_CHECKING, Any

from console.cli.branches import CallRefused, call
from console.cli.documents import SourceError, load_document

if TYPE_CHECKING:
    from pathlib import Path

    from console.cli.connection import Connection

_SEEDS = 1_000_000


class _OneFile(argparse.Action):
    """Store the file of an option; refuse a second file, which would replace the first."""

    def __call__(self, parser: Any, namespace: Any, values: Any, *_option: Any) -> None:
        if getattr(namespace, self.dest) is not None:
            parser.error("--fault: got two files, wanted one; a file can have several faults")
        setattr(namespace, self.dest, values)


def add_fault_argument(parser: argparse._ActionsContainer) -> None:
    """Add the option ``--fault``."""
    help_text = "inject the faults of a file, in YAML or JSON (for tests)"
    parser.add_argument("--fault", action=_OneFile, metavar="FILE", help=help_text)


def start_faulty(connection: Connection, path: Path, request: dict[str, str]) -> str:
    """Start an execution with the faults of a file; return its ARN.

    ``request``: the parameters of StartExecution. Raise SourceError for a file without valid
    faults, CallRefused for faults that the server refuses; both messages name the file.
    """
    # A busy server is asked again: with a name and a seed, that starts no second execution.
    request = {"name": str(uuid.uuid4()), **request}
    document = _load_faults(path)
    if isinstance(document, dict):
        document.setdefault("seed", secrets.randbelow(_SEEDS))
    body = {**request, "faults": _faults_text(path, document)}
    return str(call_with_faults(connection, path, "/api/faults", body, "faults")["executionArn"])


def faults_text(path: Path) -> str:
    """Return the faults of a file as JSON text; raise SourceError."""
    return _faults_text(path, _load_faults(path))


def call_with_faults(
    connection: Connection, path: Path, address: str, body: dict[str, str], needs: str
) -> dict[str, Any]:
    """Make a call with the faults of a file. A refusal names the file. ``needs``: see ``call``."""
    try:
        return call(connection, "POST", address, body, needs=needs)
    except CallRefused as refused:
        if not refused.code:
            raise
        raise CallRefused(f"{path}: {refused}", refused.code, refused.status) from None


def _load_faults(path: Path) -> Any:
    document: Any = load_document(path)
    return {"faults": document} if isinstance(document, list) else document


def _faults_text(path: Path, document: Any) -> str:
    try:
        return json.dumps(document, ensure_ascii=False)
    except (TypeError, ValueError) as error:
        raise SourceError(f"{path}: got {error}, wanted an array of faults") from None
