"""Read the rows of a Parquet file as JSON; needs the package ``pyarrow`` (``stateyard[parquet]``).

The file is buffered on disk, because its index is at its end. One batch of rows is in memory at a
time.
"""

from __future__ import annotations

import base64
import math
import shutil
import tempfile
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

_IN_MEMORY = 4 * 1024 * 1024  # bytes of a file; larger ones are buffered on disk
_ROWS = 500  # in memory at a time


class ParquetError(Exception):
    """The file is not Parquet, or ``pyarrow`` is missing."""


def read_rows(body: Any) -> Iterator[dict[str, Any]]:
    """Yield the rows of a byte stream as objects; raise ``ParquetError``."""
    try:
        import pyarrow as pa  # type: ignore[import-untyped]
        from pyarrow import parquet
    except ImportError:
        raise ParquetError(
            "InputType PARQUET needs the package 'pyarrow' (pip install pyarrow)"
        ) from None
    with tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY) as file:
        shutil.copyfileobj(body, file)
        file.seek(0)
        try:
            parquet_file = parquet.ParquetFile(pa.PythonFile(file, mode="r"))
            for batch in parquet_file.iter_batches(batch_size=_ROWS):
                for row in batch.to_pylist(maps_as_pydicts="lossy"):
                    yield {name: _as_json(value) for name, value in row.items()}
        except (pa.ArrowException, OSError) as error:
            raise ParquetError(f"it is no PARQUET file that can be read: {error}") from None


def _as_json(value: Any) -> Any:
    """Convert a value to JSON: times to ISO 8601 texts, bytes to Base64."""
    match value:
        case dict():
            return {str(name): _as_json(inner) for name, inner in value.items()}
        case list() | tuple():
            return [_as_json(inner) for inner in value]
        case datetime():
            zone = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
            return zone.isoformat() + ("Z" if value.tzinfo else "")
        case date() | time():
            return value.isoformat()
        case Decimal():
            return int(value) if value == value.to_integral_value() else float(value)
        case bytes():
            return base64.b64encode(value).decode()
        case float() if not math.isfinite(value):
            return None  # JSON has no number for it
        case None | bool() | int() | float() | str():
            return value
    return str(value)
