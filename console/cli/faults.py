"""Start an execution with the faults of a file, by the server's own HTTP API."""

from __future__ import annotations

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


def start_faulty(connection: Connection, path: Path, request: dict[str, str]) -> str:
    """Start an execution with the faults of a file; return its ARN.

    ``request``: of StartExecution. Raise SourceError for a file that is none, CallRefused for one
    that the server refuses; both name it.
    """
    document: Any = load_document(path)
    if isinstance(document, list):
        document = {"faults": document}
    if isinstance(document, dict):
        document.setdefault("seed", secrets.randbelow(_SEEDS))
    # A busy server is asked again: with a name and a seed, that starts no second execution.
    request = {"name": str(uuid.uuid4()), **request}
    try:
        text = json.dumps(document, ensure_ascii=False)
    except (TypeError, ValueError) as error:
        raise SourceError(f"{path}: got {error}, wanted an array of faults") from None
    try:
        answer = call(
            connection, "POST", "/api/faults", {**request, "faults": text}, needs="faults"
        )
    except CallRefused as refused:
        if not refused.code:
            raise
        raise CallRefused(f"{path}: {refused}", refused.code, refused.status) from None
    return str(answer["executionArn"])
