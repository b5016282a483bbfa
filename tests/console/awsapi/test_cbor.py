"""The codec reads and writes CBOR as RFC 8949 defines it."""

from __future__ import annotations

import contextlib

import cbor2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.awsapi import cbor
from console.errors import ErrorCode, ProtocolError
from tests.refusals import raises_code

# RFC 8949, appendix A
EXAMPLES = {
    "00": 0,
    "1818": 24,
    "1903e8": 1000,
    "1b000000e8d4a51000": 1_000_000_000_000,
    "20": -1,
    "3903e7": -1000,
    "f93c00": 1.0,
    "fa47c35000": 100000.0,
    "fb3ff199999999999a": 1.1,
    "f4": False,
    "f5": True,
    "f6": None,
    "c11a514b67b0": 1363896240,
    "c1fb41d452d9ec200000": 1363896240.5,
    "62c3bc": "ü",
    "83010203": [1, 2, 3],
    "a26161016162820203": {"a": 1, "b": [2, 3]},
    "7f657374726561646d696e67ff": "streaming",
    "9f018202039f0405ffff": [1, [2, 3], [4, 5]],
    "bf61610161629f0203ffff": {"a": 1, "b": [2, 3]},
}
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@pytest.mark.parametrize(("text", "value"), EXAMPLES.items())
def test_examples_of_the_rfc(text: str, value: object) -> None:
    """Each example reads as the value beside it."""
    assert cbor.loads(bytes.fromhex(text)) == value


@pytest.mark.slow
@given(JSON)
def test_what_is_written_reads_the_same(value: object) -> None:
    """Any JSON value survives the way out and in."""
    assert cbor.loads(cbor.dumps(value)) == value


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    """Nothing but the edge's own error comes out of rubbish."""
    with contextlib.suppress(ProtocolError):
        cbor.loads(data)


@pytest.mark.parametrize("text", ["", "ff", "82", "9b7fffffffffffffff", "0000", "81" * 60 + "00"])
def test_rubbish_is_refused(text: str) -> None:
    """Too short, too long, too deep, and lengths that promise more than there is."""
    with raises_code(ErrorCode.SerializationException):
        cbor.loads(bytes.fromhex(text))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("f7", None),
        ("416c", "l"),
        ("d81c81d81d00", [0]),
        ("d90100826461616161d81900", ["aaaa", 0]),
        ("d8235828" + "28612b292b24" * 6 + "61616161", ("(a+)+$" * 6) + "aaaa"),
        ("c2420100", "\x01\x00"),
    ],
)
def test_what_a_value_is_read_as(text: str, value: object) -> None:
    """Values that JSON lacks are read as values that it has; tags are dropped."""
    assert cbor.loads(bytes.fromhex(text)) == value


def test_forty_levels_are_read() -> None:
    """The deepest nesting that is accepted."""
    assert str(cbor.loads(bytes.fromhex("81" * 40 + "00"))) == "[" * 40 + "0" + "]" * 40


@pytest.mark.parametrize(
    "text", ["81" * 41 + "00", "c1" * 41 + "00", "a10001", "a18001", "a1a001", "f0", "61ff", "1c"]
)
def test_what_json_cannot_say_is_refused(text: str) -> None:
    """One level too deep, names that are no text, unknown simple values, no UTF-8, no length."""
    with raises_code(ErrorCode.SerializationException):
        cbor.loads(bytes.fromhex(text))


@pytest.mark.slow
def test_no_tag_has_a_meaning() -> None:
    """The library gives a meaning to some tags; each is dropped, and its value is as it stands."""
    for tag in range(66_000):
        for value in ("text", [1, 2], {"a": 1}, 7):
            body = cbor2.dumps(cbor2.CBORTag(tag, value))
            assert cbor.loads(body) == value, tag
