"""Read and write the bodies of Smithy's protocol "RPC v2 CBOR", which newer AWS SDKs speak.

The path names the service and the action, and a timestamp is a number of epoch seconds under tag 1.
The library ``cbor2`` reads and writes the bytes (RFC 8949); this module limits what it accepts to
the values that a JSON body can have. The two protocols then share everything behind them.

A body may come from any client, so ``loads`` limits its cost:

* ``cbor2`` reads an item only when its bytes are there. A length beyond the end of the body is an
  error, before memory is allocated for it.
* Containers and tags nest 40 deep at most.
* No tag is interpreted. ``cbor2`` would compile regular expressions, build cyclic lists and repeat
  earlier strings, which makes large values of small bodies. A tag is dropped and its value stays.

Source: RFC 8949; Smithy 2.0, "RPC v2 CBOR protocol".
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from typing import Any

import cbor2

from console.errors import ErrorCode, ProtocolError

CONTENT_TYPE = "application/cbor"
PROTOCOL = "rpc-v2-cbor"
MAX_DEPTH = 40
_PATH = re.compile(r"/service/([A-Za-z0-9_]+)/operation/([A-Za-z0-9_]+)")
_EPOCH_SECONDS = 1  # RFC 8949, 3.4.2
_INTERPRETED_TAGS = (
    *range(6),
    *(25, 28, 29, 30, 35, 36, 37, 52, 54, 100, 256, 258, 260, 261, 1004, 43_000, 55_799),
)
"""Tags that ``cbor2`` turns into Python objects. A test detects tags that a later release adds."""


def is_cbor(headers: Mapping[str, list[str]]) -> bool:
    """Return whether a call is in this protocol. ``headers``: lower-case name -> values."""
    return headers.get("smithy-protocol") == [PROTOCOL]


def target_of_path(path: str) -> str:
    """Return the ``X-Amz-Target`` that a path stands for, "" for a path that names no action."""
    match = _PATH.fullmatch(path)
    return "" if match is None else f"{match[1]}.{match[2]}"


# -- in --------------------------------------------------------------------------------------------


def loads(data: bytes) -> Any:
    """Return the value in a body; raise ``SerializationException`` for anything else."""
    decoder = cbor2.CBORDecoder(
        io.BytesIO(data),
        max_depth=MAX_DEPTH,
        semantic_decoders=dict.fromkeys(_INTERPRETED_TAGS, _without_meaning),
        tag_hook=_without_tag,
    )
    try:
        value = _plain(decoder.decode())
    except (cbor2.CBORDecodeError, ValueError, TypeError) as error:
        raise ProtocolError(
            ErrorCode.SerializationException, f"the body is not CBOR: {error}"
        ) from None
    if _has_more(decoder):
        raise ProtocolError(
            ErrorCode.SerializationException, f"the body is not one CBOR value: {len(data)} bytes"
        )
    return value


def _without_meaning(value: Any, immutable: bool) -> Any:
    """Return the value under a tag that ``cbor2`` knows (the arguments are cbor2's)."""
    del immutable
    return value


def _without_tag(tag: cbor2.CBORTag, immutable: bool) -> Any:
    """Return the value under a tag that ``cbor2`` does not know (the arguments are cbor2's)."""
    del immutable
    return tag.value


def _plain(value: Any) -> Any:
    """Return a value as JSON has it: bytes as Latin-1 text, "undefined" as null."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case bytes():
            return value.decode("latin-1")
        case list() | tuple():  # a tuple is a list under a tag
            return [_plain(item) for item in value]
        case Mapping():
            return {_member_name(key): _plain(member) for key, member in value.items()}
    if value is cbor2.undefined:
        return None
    raise ValueError(f"{type(value).__name__} is no value of JSON")


def _member_name(key: Any) -> str:
    if not isinstance(key, str):
        raise ValueError(f"{type(key).__name__} is no name of a member")
    return key


def _has_more(decoder: cbor2.CBORDecoder) -> bool:
    try:
        decoder.read(1)
    except cbor2.CBORDecodeEOF:
        return False
    return True


# -- out -------------------------------------------------------------------------------------------


def dumps(value: Any, shape: Any = None) -> bytes:
    """Return the bytes of a JSON value.

    ``shape``: botocore's shape of the value, which tells a timestamp from a number; None for a
    value without timestamps.
    """
    return cbor2.dumps(_tag_timestamps(value, shape))


def _tag_timestamps(value: Any, shape: Any) -> Any:
    """Return a value with each timestamp in it under the tag of epoch seconds."""
    if shape is None:
        return value
    match value:
        case list():
            return [_tag_timestamps(item, shape.member) for item in value]
        case dict():
            return {
                key: _tag_timestamps(item, _member_shape(shape, key)) for key, item in value.items()
            }
    if shape.type_name == "timestamp" and value is not None:
        return cbor2.CBORTag(_EPOCH_SECONDS, float(value))
    return value


def _member_shape(shape: Any, key: str) -> Any:
    return shape.value if shape.type_name == "map" else shape.members.get(key)
