"""Write the results of a distributed Map to S3, as ResultWriter does.

It writes one file for each final status, and a manifest of the files. Source: ResultWriter of the
ASL documentation.
"""

from __future__ import annotations

import json
import tempfile
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

import engine
from console.integrations import targets
from console.integrations.redaction import without_url_secrets

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_IN_MEMORY = 4 * 1024 * 1024  # bytes of a file; larger ones are buffered on disk


class WriterError(Exception):
    """The results cannot be written: the cause of ``States.ResultWriterFailed``."""


def write_results(
    writer: Mapping[str, Any],
    arn: str,
    records: Mapping[str, Iterable[Mapping[str, Any]]],
    region: str,
    machine: targets.MachineKey = targets.NOBODY,
) -> str:
    """Write the files; return the Map's result as JSON text.

    ``writer``: ``arguments`` (Bucket, Prefix) and ``config`` (WriterConfig). ``arn``: the Map
    Run's. ``records``: SUCCEEDED, FAILED, PENDING -> the children, described. Raise
    ``WriterError``.
    """
    arguments, config = writer["arguments"], writer.get("config") or {}
    if not isinstance(arguments.get("Bucket"), str):
        raise WriterError("ResultWriter needs a 'Bucket'")
    prefix = str(arguments.get("Prefix", "")).strip("/")
    folder = "/".join(part for part in (prefix, arn.rpartition(":")[2]) if part)
    try:
        client = targets.service_client("s3", None, region, machine)
        files = {
            status: _file(client, arguments["Bucket"], f"{folder}/{status}_0", children, config)
            for status, children in records.items()
        }
        manifest = {
            "DestinationBucket": arguments["Bucket"],
            "MapRunArn": arn,
            "ResultFiles": files,
        }
        key = f"{folder}/manifest.json"
        client.put_object(Bucket=arguments["Bucket"], Key=key, Body=engine.dumps(manifest).encode())
    except (ClientError, BotoCoreError, targets.NoTargetError) as error:
        raise WriterError(without_url_secrets(str(error))) from None
    where = {"Bucket": arguments["Bucket"], "Key": key}
    return engine.dumps({"MapRunArn": arn, "ResultWriterDetails": where})


def _file(
    client: Any, bucket: str, name: str, records: Iterable[Mapping[str, Any]], config: Any
) -> list[dict[str, Any]]:
    """Write one file if it has records; return its entry for the manifest."""
    lines = config.get("OutputType") == "JSONL"
    with tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY) as file:
        count = 0
        for record in records:
            for value in _shape_result(record, str(config.get("Transformation", "NONE"))):
                file.write(_separator(count, lines=lines) + engine.dumps(value).encode())
                count += 1
        if not count:
            return []
        file.write(b"\n" if lines else b"]")
        size = file.tell()
        file.seek(0)
        key = f"{name}.{'jsonl' if lines else 'json'}"
        client.put_object(Bucket=bucket, Key=key, Body=file)
    return [{"Key": key, "Size": size}]


def _separator(count: int, *, lines: bool) -> bytes:
    if lines:
        return b"\n" if count else b""
    return b"," if count else b"["


def _shape_result(record: Mapping[str, Any], transformation: str) -> list[Any]:
    """Return a child execution's record: all of it, its output, or its output's elements."""
    if transformation == "NONE" or "Output" not in record:
        return [record]
    value = json.loads(record["Output"])
    return value if transformation == "FLATTEN" and isinstance(value, list) else [value]
