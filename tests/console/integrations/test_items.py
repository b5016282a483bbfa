"""An item reader takes the same items from a file as the service does."""

from __future__ import annotations

import gzip
import io
import json
import math
import sys
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from console.apps import InstalledPlatform
from console.integrations import items, targets


class Bucket:
    """A client that has one object, or some by their keys."""

    def __init__(self, data: bytes | dict[str, bytes]) -> None:
        self.data = data

    def get_object(self, **parameters: Any) -> dict[str, Any]:
        """Return the object."""
        assert parameters == {"Bucket": "b", "Key": parameters["Key"]}
        data = self.data if isinstance(self.data, bytes) else self.data[parameters["Key"]]
        return {"Body": io.BytesIO(data)}


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Read a file with a ReaderConfig."""

    def reading(data: bytes | dict[str, bytes], key: str = "k", **config: Any) -> list[Any]:
        monkeypatch.setattr(targets, "service_client", lambda *_: Bucket(data))
        reader = {"resource": "arn:aws:states:::s3:getObject", "config": config}
        entries = items.read_items(
            {**reader, "arguments": {"Bucket": "b", "Key": key}}, "us-east-1"
        )
        return [item.as_input() for item in entries]

    return reading


CSV = 'H1,H2\r\nÄ,"two\nlines"\r\nshort\nlong,x,y\n'.encode()


def test_csv(read: Any) -> None:
    """Texts only; short rows are padded, surplus cells ignored, quoted line ends kept."""
    expected = [
        {"H1": "Ä", "H2": "two\nlines"},
        {"H1": "short", "H2": ""},
        {"H1": "long", "H2": "x"},
    ]
    assert read(CSV, InputType="CSV", CSVHeaderLocation="FIRST_ROW") == expected
    header = {"CSVHeaderLocation": "GIVEN", "CSVHeaders": ["A"]}
    assert read(b"a|b\n", InputType="CSV", CSVDelimiter="PIPE", **header) == [{"A": "a"}]
    assert read(gzip.compress(CSV), "k.gz", InputType="CSV", MaxItems=1) == expected[:1]


def test_a_backslash_in_csv(read: Any) -> None:
    """It makes another character of the line an ordinary one, and is removed.

    Source: developer guide, "How Step Functions parses input CSV files", whose example is the
    first line.
    """
    escaped = rb"""C:\\Program Files\\MyApp.exe,6534512
na\,b,2
"x\"y",3
q\z,4
C:\dir\
C:\\dir\\,6
"""
    two = {"CSVHeaderLocation": "GIVEN", "CSVHeaders": ["path", "size"]}
    assert read(escaped, InputType="CSV", **two) == [
        {"path": r"C:\Program Files\MyApp.exe", "size": "6534512"},
        {"path": "na,b", "size": "2"},
        {"path": 'x"y', "size": "3"},
        {"path": "qz", "size": "4"},
        {"path": "C:dir", "size": ""},
        {"path": "C:\\dir\\", "size": "6"},
    ]


def test_doubled_quotes_in_csv(read: Any) -> None:
    """Two quotes are one in every field, not only in a field with quotes around it.

    The last line is the example of the developer guide, "How Step Functions parses input CSV
    files".
    """
    data = rb'''x,{""k"":""v""}
x,5"" pipe
5"" pipe,6""
""a"",""b""
"",""
"""",\"""
"a ""b"" c",d""
a\,"" b,c
one"quote,"a"b
"two
""lines"" of","""quoted"""
"This string contains commas, a double quotation marks (""), and a newline (
)",{""MyKey"":""MyValue""}
'''
    two = {"CSVHeaderLocation": "GIVEN", "CSVHeaders": ["a", "b"]}
    rows = [list(row.values()) for row in read(data, InputType="CSV", **two)]
    assert rows == [
        ["x", '{"k":"v"}'],
        ["x", '5" pipe'],
        ['5" pipe', '6"'],
        ['"a"', '"b"'],
        ["", ""],
        ['"', '""'],
        ['a "b" c', 'd"'],
        ['a," b', "c"],
        ['one"quote', "ab"],
        ['two\n"lines" of', '"quoted"'],
        [
            'This string contains commas, a double quotation marks ("), and a newline (\n)',
            '{"MyKey":"MyValue"}',
        ],
    ]
    piped = data.replace(b",", b"|")
    table = read(piped, InputType="CSV", CSVDelimiter="PIPE", **two)
    assert [list(row.values()) for row in table][:6] == rows[:6]


def test_json_and_json_lines(read: Any) -> None:
    """Arrays, members of objects, a pointer into the file, one value a line."""
    assert read(b"[1, 2, 3]", InputType="JSON", MaxItems=2) == [1, 2]
    assert read(b'{"a": 1}', InputType="JSON") == [{"Key": "a", "Value": 1}]
    assert read(b'{"a/b": [{"c": [7]}]}', InputType="JSON", ItemsPointer="/a~1b/0/c") == [7]
    assert read('{"a": "\u2028"}\n\n2'.encode(), InputType="JSONL") == [{"a": "\u2028"}, 2]


def test_an_inventory(read: Any) -> None:
    """The manifest's columns name the values of the files it names."""
    manifest = {
        "destinationBucket": "arn:aws:s3:::b",
        "fileFormat": "CSV",
        "fileSchema": "Bucket, Key, Size",
        "files": [{"key": "one.csv.gz"}, {"key": "two.csv.gz"}],
    }
    data = {
        "m": json.dumps(manifest).encode(),
        "one.csv.gz": gzip.compress(b'"x","a","1"\n'),
        "two.csv.gz": gzip.compress(b'"x","b","2"\n'),
    }
    expected = [{"Bucket": "x", "Key": key, "Size": size} for key, size in (("a", "1"), ("b", "2"))]
    assert read(data, "m", InputType="MANIFEST", ManifestType="S3_INVENTORY") == expected


def parquet_file(rows: list[dict[str, Any]]) -> bytes:
    """Return a Parquet file."""
    import pyarrow as pa  # type: ignore[import-untyped]
    from pyarrow import parquet

    file = io.BytesIO()
    parquet.write_table(pa.Table.from_pylist(rows), file, row_group_size=2)
    return file.getvalue()


@pytest.mark.slow  # pyarrow is in the extra test-full
def test_parquet(read: Any) -> None:
    """Rows as JSON has them, in any number of row groups."""
    moment = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    row = {
        "number": 1,
        "none": None,
        "text": "ä",
        "at": moment,
        "local": moment.replace(tzinfo=None),
        "day": moment.date(),
        "bytes": b"\x00\x01",
        "price": Decimal("1.50"),
        "list": [{"a": 1}],
        "nan": math.nan,
    }
    (item,) = read(parquet_file([row]), InputType="PARQUET")
    assert item == {
        "number": 1,
        "none": None,
        "text": "ä",
        "at": "2026-01-02T03:04:05Z",
        "local": "2026-01-02T03:04:05",
        "day": "2026-01-02",
        "bytes": "AAE=",
        "price": 1.5,
        "list": [{"a": 1}],
        "nan": None,
    }
    many = [{"n": number} for number in range(5)]
    assert read(parquet_file(many), InputType="PARQUET", MaxItems=3) == many[:3]


def test_parquet_needs_its_package(read: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cause says what to install; so does the check of a new definition."""
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(items.ReaderError, match=r"pip install pyarrow"):
        read(b"", InputType="PARQUET")
    with pytest.raises(items.ReaderError, match="pyarrow"):
        items.parse_items("x", {"InputType": "PARQUET"})
    assert "pip install pyarrow" in InstalledPlatform().missing_reader("PARQUET")
    assert not InstalledPlatform().missing_reader("CSV")


def test_what_athena_unloaded(read: Any) -> None:
    """The manifest names the files; InputType tells their format, compressed or not."""
    data = {
        "m.csv": b"s3://b/dir/one\n\ns3://b/dir/two.gz\n",
        "dir/one": b'{"n": 1}\n{"n": 2}\n',
        "dir/two.gz": gzip.compress(b'{"n": 3}\n'),
    }
    config = {"InputType": "JSONL", "ManifestType": "ATHENA_DATA"}
    assert read(data, "m.csv", **config) == [{"n": 1}, {"n": 2}, {"n": 3}]
    rows = {"m.csv": b"s3://b/one\n", "one": b"1,2\n"}
    options = {"InputType": "CSV", "CSVHeaderLocation": "GIVEN", "CSVHeaders": ["a", "b"]}
    assert read(rows, "m.csv", **options, ManifestType="ATHENA_DATA") == [{"a": "1", "b": "2"}]
    with pytest.raises(items.ReaderError, match="not that of Athena: got 'file:///etc/passwd'"):
        read({"m": b"file:///etc/passwd\n"}, "m", **config)
    with pytest.raises(items.ReaderError, match="InputType: got MANIFEST, wanted one of CSV"):
        read(rows, "m.csv", InputType="MANIFEST", ManifestType="ATHENA_DATA")


@pytest.mark.parametrize(
    ("data", "config", "words"),
    [
        (b"1", {"InputType": "JSON"}, "Attempting to map over non-iterable node."),
        (b"[", {"InputType": "JSON"}, "not valid JSON"),
        (b"[1]", {"InputType": "JSON", "MaxItems": -1}, "field MaxItems must be positive"),
        (
            b"[1]",
            {"InputType": "JSON", "ItemsPointer": "/a"},
            "Attempting to map over non-iterable node.",
        ),
        (b"a,a\n", {"InputType": "CSV"}, "CSV headers cannot contain duplicates."),
        (b"\xff\n", {"InputType": "CSV"}, "cannot be read"),
        (b"", {"InputType": "PARQUET"}, "PARQUET"),
        (b"[]", {"InputType": "MANIFEST"}, "not that of an S3 inventory"),
    ],
)
def test_what_cannot_be_read(read: Any, data: bytes, config: dict[str, Any], words: str) -> None:
    """The cause is the service's where it is recorded."""
    with pytest.raises(items.ReaderError, match=words):
        read(data, **config)
