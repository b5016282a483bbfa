"""Read ItemReader, ItemBatcher and ResultWriter of a distributed Map in a definition.

Source: the pages of these fields in the developer guide. Newer rules do not apply to stored
definitions.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from engine.data.jsonata import is_jsonata
from engine.language.platform import current_platform
from engine.language.wording import all_missing, only_one_of, wrong_language

if TYPE_CHECKING:
    from collections.abc import Iterable

    from engine.data.expression import Expression
    from engine.language.node import DefinitionNode

_READERS = re.compile(r"arn:aws[a-z-]*:states:::s3:(getObject|listObjectsV2)")
_WRITERS = re.compile(r"arn:aws[a-z-]*:states:::s3:putObject")
_MAX_ITEMS = 100_000_000
_MAX_BATCH_BYTES = 262_144
_INPUT_TYPES = ("CSV", "JSON", "JSONL", "PARQUET", "MANIFEST")
_ATHENA_TYPES = ("CSV", "JSONL", "PARQUET")
_CSV_FIELDS = ("CSVDelimiter", "CSVHeaderLocation", "CSVHeaders")
_READER_CONFIG = {
    "InputType": _INPUT_TYPES,
    "Transformation": ("NONE", "LOAD_AND_FLATTEN"),
    "ManifestType": ("ATHENA_DATA", "S3_INVENTORY"),
    "CSVDelimiter": ("COMMA", "PIPE", "SEMICOLON", "SPACE", "TAB"),
    "CSVHeaderLocation": ("FIRST_ROW", "GIVEN"),
    "CSVHeaders": (),
    "ItemsPointer": (),
    "MaxItems": (),
    "MaxItemsPath": (),
}
_BATCH_LIMITS = {"MaxItemsPerBatch": None, "MaxInputBytesPerBatch": _MAX_BATCH_BYTES}
_WRITER_CONFIG = {
    "OutputType": ("JSON", "JSONL"),
    "Transformation": ("NONE", "COMPACT", "FLATTEN"),
}


def read_number(node: DefinitionNode, name: str, most: int | None = None) -> Expression | None:
    """Return a whole number >= 0, literal or by a path; report any other value."""
    if node.has(f"{name}Path"):
        return node.reference(f"{name}Path")
    return node.scalar(name, 0) if most is None else node.scalar(name, 0, most)


# -- ItemReader ------------------------------------------------------------------------------------


def read_item_reader(node: DefinitionNode) -> dict[str, Any] | None:
    """Return the fields of ItemReader; expressions are compiled."""
    reader = node.child("ItemReader")
    if reader is None:
        return None
    _check_call(reader, _READERS, "ReaderConfig")
    resource = str(reader.get("Resource"))
    config = reader.child("ReaderConfig")
    item_reader = {**reader.value, **_read_arguments(reader)}
    if config is not None:
        _check_reader_config(config, lists=resource.endswith(":listObjectsV2"))
        item_reader["ReaderConfig"] = _read_reader_config(config)
    return item_reader


def _read_reader_config(config: DefinitionNode) -> dict[str, Any]:
    """Return ReaderConfig; MaxItems or MaxItemsPath becomes an expression."""
    if config.has("MaxItems") and config.has("MaxItemsPath"):
        config.newer_error("", only_one_of(("MaxItems", "MaxItemsPath")))
    reader_config = {
        key: value for key, value in config.value.items() if not key.startswith("MaxItems")
    }
    most = read_number(config, "MaxItems", _MAX_ITEMS)
    return reader_config if most is None else {**reader_config, "MaxItems": most}


def _check_reader_config(config: DefinitionNode, *, lists: bool) -> None:
    """Check that fields fit each other; ``lists``: the reader lists objects."""
    _check_names(config, _READER_CONFIG, path_only=("MaxItemsPath",))
    _check_values(config, _READER_CONFIG)
    kind = config.get("InputType")
    if kind == "CSV":
        _check_csv(config)
    elif kind != "MANIFEST":  # whose files are CSV, too
        for name in _CSV_FIELDS:
            if config.has(name):
                config.newer_error("", f"Field '{name}' is not supported")
    if lists and config.get("Transformation") == "LOAD_AND_FLATTEN" and kind is None:
        config.newer_error("", "These fields are required: [InputType]")
    if config.get("ManifestType") == "ATHENA_DATA" and kind not in _ATHENA_TYPES:
        message = f"Value should be one of the following: [{', '.join(_ATHENA_TYPES)}]"
        config.newer_error("InputType", message)
    _check_pointer(config, kind)
    if isinstance(kind, str) and (missing := current_platform().missing_reader(kind)):
        config.newer_error("InputType", missing)


def _check_csv(config: DefinitionNode) -> None:
    where = config.get("CSVHeaderLocation")
    if where is None:
        config.newer_error("", "The field 'CSVHeaderLocation' is required")
    if where == "GIVEN" and not config.has("CSVHeaders"):
        config.newer_error("", "These fields are required: [CSVHeaders]")


def _check_pointer(config: DefinitionNode, kind: Any) -> None:
    """Check ItemsPointer: a JSON pointer (RFC 6901) into a JSON file."""
    if not config.has("ItemsPointer"):
        return
    pointer = config.get("ItemsPointer")
    if kind != "JSON":
        config.newer_error("", "Field 'ItemsPointer' is not supported")
    elif not isinstance(pointer, str):
        config.newer_error("ItemsPointer", "Expected value of type String")
    elif not is_jsonata(pointer) and pointer[:1] not in ("", "/"):
        config.newer_error("ItemsPointer", "Value is not a valid JSON Pointer")


# -- ItemBatcher -----------------------------------------------------------------------------------


def read_item_batcher(node: DefinitionNode) -> dict[str, Any] | None:
    """Return the fields of ItemBatcher; each limit is an expression named ...Path."""
    batcher = node.child("ItemBatcher")
    if batcher is None:
        return None
    names = [*_BATCH_LIMITS, *(f"{name}Path" for name in _BATCH_LIMITS)]
    _check_names(batcher, (*names, "BatchInput"), path_only=names[len(_BATCH_LIMITS) :])
    if not any(batcher.has(name) for name in names):
        message = (
            f"This object should have at least one of the following fields: [{', '.join(names)}]"
        )
        batcher.newer_error("", message)
    item_batcher: dict[str, Any] = {}
    for name, most in _BATCH_LIMITS.items():
        if batcher.has(name) and batcher.has(f"{name}Path"):
            batcher.newer_error("", only_one_of((name, f"{name}Path")))
        limit = read_number(batcher, name, most)
        if limit is not None:
            item_batcher[f"{name}Path"] = limit
    if batcher.has("BatchInput"):
        item_batcher["BatchInput"] = batcher.template("BatchInput")
    return item_batcher


# -- ResultWriter ----------------------------------------------------------------------------------


def read_result_writer(node: DefinitionNode) -> dict[str, Any] | None:
    """Return the fields of ResultWriter; expressions are compiled."""
    writer = node.child("ResultWriter")
    if writer is None:
        return None
    if not writer.value:
        writer.newer_error("", all_missing(("Resource", "WriterConfig")))
    elif not writer.has("WriterConfig") or writer.has("Resource") or _arguments_of(writer):
        _check_call(writer, _WRITERS, "WriterConfig")
    config = writer.child("WriterConfig")
    if config is not None:
        _check_names(config, _WRITER_CONFIG)
        _check_values(config, _WRITER_CONFIG)
        if not config.value:
            config.newer_error("", "Value cannot be empty")
    return {**writer.value, **_read_arguments(writer)}


# -- what the parts share --------------------------------------------------------------------------


def _check_call(part: DefinitionNode, resources: re.Pattern[str], config: str) -> None:
    """Check the Resource of a reader or writer, and that arguments are present."""
    own = "Arguments" if part.jsonata else "Parameters"
    other = "Parameters" if part.jsonata else "Arguments"
    _check_names(part, ("Resource", own, other, config, "Comment"))
    if part.has(other):
        part.newer_error("", wrong_language(other, part.language))
    missing = [name for name in ("Resource", own) if not part.has(name)]
    if missing:
        part.newer_error("", f"These fields are required: [{', '.join(missing)}]")
    resource = part.text("Resource")
    if resource is not None and not resources.fullmatch(resource):
        message = "The field 'Resource' does not match any of the allowed values"
        part.newer_error("Resource", message)


def _arguments_of(part: DefinitionNode) -> list[str]:
    return [name for name in ("Parameters", "Arguments") if part.has(name)]


def _read_arguments(part: DefinitionNode) -> dict[str, Any]:
    return {name: part.template(name) for name in _arguments_of(part)}


def _check_names(
    part: DefinitionNode, allowed: Iterable[str], *, path_only: Iterable[str] = ()
) -> None:
    for name in part.value:
        if name not in allowed:
            part.newer_error("", f"Field '{name}' is not supported")
        elif part.jsonata and name in path_only:
            part.newer_error("", wrong_language(name, part.language))


def _check_values(part: DefinitionNode, values: dict[str, tuple[str, ...]]) -> None:
    """Check the fields with a fixed set of values; expressions are allowed."""
    for name, allowed in values.items():
        value = part.get(name)
        if not allowed or not part.has(name) or (part.jsonata and is_jsonata(value)):
            continue
        if value not in allowed:
            message = f"Value should be one of the following: [{', '.join(allowed)}]"
            part.newer_error(name, message)
