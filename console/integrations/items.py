"""Read the items of a distributed Map from S3 (ItemReader).

``read_items`` yields items one by one, so that CSV, JSON Lines, Parquet and listings of any length
need little memory. Source: ItemReader of the ASL documentation, recorded runs.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import itertools
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from botocore.exceptions import BotoCoreError, ClientError

import engine
from console.integrations import parquet, targets
from console.integrations.redaction import without_url_secrets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

_MOST = 100_000_000
_MAX_JSON = 64 * 1024 * 1024  # a JSON file is parsed as a whole
_ATHENA_TYPES = ("CSV", "JSONL", "PARQUET")
_NOT_ITERABLE = "Attempting to map over non-iterable node."
_DELIMITERS = {"COMMA": ",", "PIPE": "|", "SEMICOLON": ";", "SPACE": " ", "TAB": "\t"}


class ReaderError(Exception):
    """The items cannot be read: the cause of ``States.ItemReaderFailed``."""


def read_items(
    reader: dict[str, Any], region: str, machine: targets.MachineKey = targets.NOBODY
) -> Iterator[engine.DatasetItem]:
    """Yield the items.

    ``reader``: ``resource`` (its ARN), ``arguments`` (Bucket, Key, Prefix) and ``config``
    (ReaderConfig with its paths evaluated). ``machine``: whose targets count. Raise
    ``ReaderError``.
    """
    config = reader.get("config", {})
    most = config.get("MaxItems", 0)
    if most < 0:
        raise ReaderError("field MaxItems must be positive")
    try:
        items = _items(reader, config, targets.service_client("s3", None, region, machine))
        yield from itertools.islice(items, min(most, _MOST) or None)
    except (ClientError, BotoCoreError, targets.NoTargetError) as error:
        raise ReaderError(without_url_secrets(str(error))) from None
    except (UnicodeDecodeError, csv.Error, gzip.BadGzipFile, parquet.ParquetError) as error:
        raise ReaderError(f"The file cannot be read: {error}") from None
    except engine.JsonTextError as error:
        raise ReaderError(f"The file is not valid JSON: {error}") from None


def parse_items(text: str, config: Mapping[str, Any]) -> list[Any]:
    """Return the items of a file's text, by its ReaderConfig; raise ``ReaderError``."""
    kind = str(config.get("InputType", "JSON"))
    if kind not in _READ:
        raise ReaderError(f"InputType: got {kind}, which cannot be read here")
    try:
        items = _READ[kind](io.BytesIO(text.encode()), dict(config))
        return [item.as_input() if isinstance(item, engine.DatasetItem) else item for item in items]
    except (UnicodeError, csv.Error, engine.JsonTextError, parquet.ParquetError) as error:
        raise ReaderError(f"The data cannot be read: {error}") from None


def find_items(text: str, pointer: str) -> Any:
    """Return the value at an ItemsPointer in a JSON file's text; raise ``ReaderError``."""
    try:
        return _follow_pointer(engine.loads(text), pointer)
    except engine.JsonTextError as error:
        raise ReaderError(f"The data cannot be read: {error}") from None


def _items(
    reader: dict[str, Any], config: dict[str, Any], client: Any
) -> Iterable[engine.DatasetItem]:
    arguments = reader["arguments"]
    bucket = str(arguments.get("Bucket"))
    if reader["resource"].endswith(":listObjectsV2"):
        listed = _listed(client, arguments)
        if config.get("Transformation") != "LOAD_AND_FLATTEN":
            return (engine.DatasetItem(entry, source=f"S3://{bucket}") for entry in listed)
        return _listed_items(client, bucket, listed, config)
    if "Key" not in arguments or "Bucket" not in arguments:
        raise ReaderError("ItemReader needs 'Bucket' and 'Key'")
    location = {
        name: arguments[name] for name in ("Bucket", "Key", "VersionId") if name in arguments
    }
    manifest = config.get("ManifestType")
    if manifest == "ATHENA_DATA":
        return _athena_data(client, location, config)
    if manifest == "S3_INVENTORY" or config.get("InputType") == "MANIFEST":
        return _inventory(client, location)
    return _file(client, location, config)


def _file(
    client: Any, location: dict[str, Any], config: dict[str, Any]
) -> Iterator[engine.DatasetItem]:
    """Yield the items of one file, each with the file's address."""
    kind = str(config.get("InputType", "JSON"))
    if kind not in _READ:
        raise ReaderError(f"InputType: got {kind}, which cannot be read here")
    body = client.get_object(**location)["Body"]
    source = f"S3://{location['Bucket']}/{location['Key']}"
    for item in _READ[kind](_unpacked(body, str(location["Key"])), config):
        if isinstance(item, engine.DatasetItem):
            yield replace(item, source=source)
        else:
            yield engine.DatasetItem(item, source=source)


def _listed_items(
    client: Any, bucket: str, listed: Iterable[dict[str, Any]], config: dict[str, Any]
) -> Iterator[engine.DatasetItem]:
    """Yield the items of every listed file; folders are skipped."""
    for entry in listed:
        if not entry["Key"].endswith("/"):
            yield from _file(client, {"Bucket": bucket, "Key": entry["Key"]}, config)


def _inventory(client: Any, location: dict[str, Any]) -> Iterator[engine.DatasetItem]:
    """Yield the objects of an S3 inventory: a manifest that names compressed CSV files."""
    manifest = engine.loads(client.get_object(**location)["Body"].read(_MAX_JSON).decode())
    try:
        headers = [name.strip() for name in manifest["fileSchema"].split(",")]
        bucket = manifest["destinationBucket"].rpartition(":")[2]
        files = [file["key"] for file in manifest["files"]]
    except (TypeError, KeyError, AttributeError) as error:
        raise ReaderError(f"The manifest is not that of an S3 inventory: {error}") from None
    rows = {"InputType": "CSV", "CSVHeaderLocation": "GIVEN", "CSVHeaders": headers}
    for key in files:
        yield from _file(client, {"Bucket": bucket, "Key": key}, rows)


def _athena_data(
    client: Any, location: dict[str, Any], config: dict[str, Any]
) -> Iterator[engine.DatasetItem]:
    """Yield the rows of an Athena UNLOAD: its manifest names one file a line, ``s3://bucket/key``.

    The names of the files do not show their format: InputType tells it.
    """
    kind = config.get("InputType")
    if kind not in _ATHENA_TYPES:
        raise ReaderError(f"InputType: got {kind}, wanted one of {', '.join(_ATHENA_TYPES)}")
    manifest = _lines(_unpacked(client.get_object(**location)["Body"], str(location["Key"])))
    for row in csv.reader(manifest):
        if not row:
            continue
        address = urlsplit(row[0].strip())
        if address.scheme.lower() not in ("s3", "s3a", "s3n") or not address.path.strip("/"):
            raise ReaderError(f"The manifest is not that of Athena: got {row[0][:200]!r}")
        # A '#' or '?' belongs to the key: it is cut out of the text, not of the parsed address.
        key = row[0].strip().partition(f"//{address.netloc}/")[2]
        yield from _file(client, {"Bucket": address.netloc, "Key": key}, config)


def _unpacked(body: Any, key: str) -> Any:
    return gzip.GzipFile(fileobj=body) if key.endswith(".gz") else body


# -- listings --------------------------------------------------------------------------------------


def _listed(client: Any, arguments: dict[str, Any]) -> Iterator[dict[str, Any]]:
    location = {name: arguments[name] for name in ("Bucket", "Prefix") if name in arguments}
    for page in client.get_paginator("list_objects_v2").paginate(**location):
        for entry in page.get("Contents", ()):
            yield {
                "Etag": entry["ETag"],
                "Key": entry["Key"],
                "LastModified": int(entry["LastModified"].timestamp()),
                "Size": entry["Size"],
                "StorageClass": entry.get("StorageClass", "STANDARD"),
            }


# -- files -----------------------------------------------------------------------------------------


_LINE_END = re.compile(r"(?<!\\)((?:\\\\)*)\\(\r?\n?)\Z")
"""A backslash that would escape the end of a line."""


def _csv_rows(body: Any, config: dict[str, Any]) -> Iterator[dict[str, str]]:
    """Yield CSV rows as texts; short rows are padded, surplus cells ignored [recorded].

    A backslash makes a character of the same line an ordinary one, and is removed; a doubled quote
    is one quote, also in a field without quotes around it. Source: developer guide, "How Step
    Functions parses input CSV files".
    """
    delimiter = _DELIMITERS.get(str(config.get("CSVDelimiter", "COMMA")), ",")
    unescaped = (_LINE_END.sub(r"\1\2", line) for line in _lines(body))
    lines = _escape_doubled_quotes(unescaped, delimiter)
    rows = csv.reader(lines, delimiter=delimiter, escapechar="\\", strict=False)
    in_config = config.get("CSVHeaderLocation") == "GIVEN"
    headers = config.get("CSVHeaders", []) if in_config else next(rows, [])
    if len(set(headers)) != len(headers):
        raise ReaderError("CSV headers cannot contain duplicates.")
    for row in rows:
        yield {name: row[at] if at < len(row) else "" for at, name in enumerate(headers)}


def _escape_doubled_quotes(lines: Iterable[str], delimiter: str) -> Iterator[str]:
    r"""Write a doubled quote of a field without quotes around it as ``\"``.

    The csv module knows doubled quotes only in quoted fields. A field such as ``""a""``, with text
    after the doubled quote, is not quoted.
    """
    mark = re.escape(delimiter)
    inside = r'(?:[^"\\]|\\.|"")*(?:"|(?P<open>\Z))'
    quoted_field = rf'(?:\A|{mark})"(?!"[^"{mark}\r\n]){inside}'
    token = re.compile(rf'{quoted_field}|\\.|(?P<doubled>"")', re.DOTALL)
    remainder = re.compile(inside, re.DOTALL)
    quoted = False
    for line in lines:
        if '"' not in line:
            yield line
            continue
        start = 0
        if quoted and (head := remainder.match(line)):
            start, quoted = head.end(), head["open"] is not None
        pieces = [line[:start]]
        for match in token.finditer(line[start:]):
            quoted = match["open"] is not None
        pieces.append(token.sub(lambda pair: '\\"' if pair["doubled"] else pair[0], line[start:]))
        yield "".join(pieces)


def _json(body: Any, config: dict[str, Any]) -> Iterable[Any]:
    data = body.read(_MAX_JSON + 1)
    if len(data) > _MAX_JSON:
        raise ReaderError(f"The file is larger than {_MAX_JSON} bytes; JSON Lines may be longer")
    value = _follow_pointer(
        engine.loads(data.decode("utf-8-sig")), str(config.get("ItemsPointer", ""))
    )
    if isinstance(value, dict):
        return [engine.DatasetItem(inner, key) for key, inner in value.items()]
    if not isinstance(value, list):
        raise ReaderError(_NOT_ITERABLE)
    return value


def _follow_pointer(value: Any, pointer: str) -> Any:
    """Follow a JSON pointer (RFC 6901).

    A pointer to a missing value has the error text for a value without items: both find no node to
    go through.
    """
    for part in pointer.split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(value, list) and name.isdecimal() and int(name) < len(value):
            value = value[int(name)]
        elif isinstance(value, dict) and name in value:
            value = value[name]
        else:
            raise ReaderError(_NOT_ITERABLE)
    return value


def _jsonl(body: Any, config: dict[str, Any]) -> Iterator[Any]:
    del config
    return (engine.loads(line) for line in _lines(body) if line.strip())


def _parquet_rows(body: Any, config: dict[str, Any]) -> Iterator[dict[str, Any]]:
    del config
    return parquet.read_rows(body)


def _lines(body: Any) -> Iterator[str]:
    """Yield the lines of a stream of bytes; quoted line ends stay with csv."""
    decoder = codecs.getincrementaldecoder("utf-8-sig")()
    rest = ""
    while data := body.read(1 << 16):
        *lines, rest = (rest + decoder.decode(data)).split("\n")
        yield from (f"{line}\n" for line in lines)
    rest += decoder.decode(b"", final=True)
    if rest:
        yield rest


_READ: dict[str, Callable[[Any, dict[str, Any]], Iterable[Any]]] = {
    "CSV": _csv_rows,
    "JSON": _json,
    "JSONL": _jsonl,
    "PARQUET": _parquet_rows,
}
