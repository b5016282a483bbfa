"""How do CBOR calls look?  The protocol ``rpc-v2-cbor`` of AWS's newer SDKs.

Source: RFC 8949, and Smithy's "RPC v2 CBOR": the service and the action stand in the path, and a
timestamp is epoch seconds under tag 1. Bodies are read into the same values as JSON ones.
"""

from __future__ import annotations

import re
import struct
from typing import TYPE_CHECKING, Any

from console.awsapi.errors import SerializationException

if TYPE_CHECKING:
    from collections.abc import Mapping

CONTENT_TYPE = "application/cbor"
PROTOCOL = "rpc-v2-cbor"
_PATH = re.compile(r"/service/([A-Za-z0-9_]+)/operation/([A-Za-z0-9_]+)")
_DEEPEST = 40
_INDEFINITE = 31
_BREAK = object()
_SIMPLE = {20: False, 21: True, 22: None, 23: None, _INDEFINITE: _BREAK}
_FLOATS = {25: (">e", 2), 26: (">f", 4), 27: (">d", 8)}


def is_cbor(headers: Mapping[str, list[str]]) -> bool:
    """Tell whether a call is in this protocol."""
    return headers.get("smithy-protocol") == [PROTOCOL]


def target(path: str) -> str:
    """Return what ``X-Amz-Target`` would be for a path, "" for a path that names nothing."""
    found = _PATH.fullmatch(path)
    return "" if found is None else f"{found[1]}.{found[2]}"


# -- in --------------------------------------------------------------------------------------------


def loads(data: bytes) -> Any:
    """Return the value in a body; raise ``SerializationException``."""
    reader = _Reader(data)
    try:
        value = reader.value(0)
    except (IndexError, ValueError, struct.error, TypeError) as error:
        raise SerializationException(f"the body is not CBOR: {error}") from None
    if value is _BREAK or reader.at != len(data):
        raise SerializationException(f"the body is not one CBOR value: {len(data)} bytes")
    return value


class _Reader:
    """Reads one value after another."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def value(self, depth: int) -> Any:
        if depth > _DEEPEST:
            raise ValueError(f"nested more than {_DEEPEST} deep")
        (first,) = self._take(1)
        kind, info = first >> 5, first & 31
        if kind == 7:  # noqa: PLR2004 - RFC 8949: floats and simple values
            return self._simple(info)
        if kind in (0, 1):
            number = self._number(info)
            return number if kind == 0 else -1 - number
        if kind in (2, 3):
            return self._text(kind, info, depth)
        if kind == 6:  # noqa: PLR2004 - a tag; the value says enough
            self._number(info)
            return self.value(depth + 1)
        return self._list(info, depth) if kind == 4 else self._map(info, depth)  # noqa: PLR2004

    def _take(self, size: int) -> bytes:
        part = self.data[self.at : self.at + size]
        if len(part) < size:
            raise ValueError("it ends too early")
        self.at += size
        return part

    def _number(self, info: int) -> int:
        if info < 24:  # noqa: PLR2004 - the number itself
            return info
        if info > 27:  # noqa: PLR2004 - reserved, or without an end where there is none
            raise ValueError(f"{info} is no length")
        return int.from_bytes(self._take(1 << (info - 24)), "big")

    def _simple(self, info: int) -> Any:
        if info in _FLOATS:
            code, size = _FLOATS[info]
            return struct.unpack(code, self._take(size))[0]
        if info not in _SIMPLE:
            raise ValueError(f"{info} is no simple value")
        return _SIMPLE[info]

    def _text(self, kind: int, info: int, depth: int) -> str:
        if info == _INDEFINITE:
            return "".join(self._until_break(depth))
        part = self._take(self._number(info))
        return part.decode("utf-8" if kind == 3 else "latin-1")  # noqa: PLR2004 - text or bytes

    def _list(self, info: int, depth: int) -> list[Any]:
        if info == _INDEFINITE:
            return self._until_break(depth)
        return [self._item(depth) for _ in range(self._number(info))]

    def _map(self, info: int, depth: int) -> dict[str, Any]:
        if info == _INDEFINITE:
            flat = self._until_break(depth)
        else:
            flat = [self._item(depth) for _ in range(2 * self._number(info))]
        return dict(zip(flat[::2], flat[1::2], strict=True))

    def _item(self, depth: int) -> Any:
        value = self.value(depth + 1)
        if value is _BREAK:
            raise ValueError("a break where a value should be")
        return value

    def _until_break(self, depth: int) -> list[Any]:
        values = []
        while (value := self.value(depth + 1)) is not _BREAK:
            values.append(value)
        return values


# -- out -------------------------------------------------------------------------------------------


def dumps(value: Any, shape: Any = None) -> bytes:
    """Write a value. ``shape``: botocore's, which tells a timestamp from a number."""
    if shape is not None and shape.type_name == "timestamp":
        return b"\xc1" + struct.pack(">Bd", 0xFB, value)
    match value:
        case bool():
            return b"\xf5" if value else b"\xf4"
        case None:
            return b"\xf6"
        case int():
            return _head(0, value) if value >= 0 else _head(1, -1 - value)
        case float():
            return struct.pack(">Bd", 0xFB, value)
        case str():
            data = value.encode("utf-8", "surrogatepass")
            return _head(3, len(data)) + data
        case list():
            member = None if shape is None else shape.member
            return _head(4, len(value)) + b"".join(dumps(one, member) for one in value)
        case dict():
            pairs = (dumps(key) + dumps(one, _member(shape, key)) for key, one in value.items())
            return _head(5, len(value)) + b"".join(pairs)
    raise TypeError(f"cbor: got {type(value).__name__}, wanted a JSON value")


def _member(shape: Any, key: str) -> Any:
    if shape is None:
        return None
    return shape.value if shape.type_name == "map" else shape.members.get(key)


def _head(kind: int, number: int) -> bytes:
    """Return the first bytes of a value: its kind, and a number in as few bytes as it takes."""
    if number < 24:  # noqa: PLR2004 - in the byte itself
        return bytes([kind << 5 | number])
    power = next(power for power in range(4) if number < 1 << (8 << power))
    return bytes([kind << 5 | 24 + power]) + number.to_bytes(1 << power, "big")
