"""CloudFormation's pure intrinsic functions, such as ``Fn::Split``: they need only arguments."""

from __future__ import annotations

import base64
import ipaddress
import itertools
import re
from typing import Any

from console.cli.documents import kind_of
from console.features.deploy.parameters import parse_value, text_of

_MOST_NETWORKS = 256
_HOST_BITS = {4: 8, 6: 64}
"""IP version -> the default number of host bits of a network."""


def select_value(index: Any, values: Any) -> Any:
    """Return one of the values of a list."""
    number = int(text_of(index))
    if not isinstance(values, list):
        raise TypeError(f"a list, not {kind_of(values)}")
    if not 0 <= number < len(values):
        raise IndexError(f"{number} of {len(values)} values")
    return values[number]


def split_text(delimiter: Any, text: Any) -> list[str]:
    """Return the parts of a text."""
    return text_of(text).split(text_of(delimiter))


def encode_base64(text: Any) -> str:
    """Return a text in Base64."""
    return base64.b64encode(text_of(text).encode()).decode()


def count_values(value: Any) -> int:
    """Return the length of a list."""
    if not isinstance(value, list):
        raise TypeError(f"a list, not {kind_of(value)}")
    return len(value)


def list_networks(block: Any, count: Any, bits: Any = None) -> list[str]:
    """Return the first subnets of a CIDR block. ``bits``: the host bits of each."""
    network = ipaddress.ip_network(text_of(block))
    host_bits = int(text_of(bits)) if bits is not None else _HOST_BITS[network.version]
    prefix = network.max_prefixlen - host_bits
    number = int(text_of(count))
    subnets = [str(part) for part in itertools.islice(network.subnets(new_prefix=prefix), number)]
    if not 0 < number <= _MOST_NETWORKS or len(subnets) < number:
        raise ValueError(f"{number} networks of /{prefix} in {network}")
    return subnets


def list_zones(region: Any) -> list[str]:
    """Return three availability zones: the account's real zones are known only to AWS."""
    return [f"{text_of(region)}{letter}" for letter in "abc"]


def is_equal(first: Any, second: Any) -> bool:
    """Whether two values are equal as texts (Fn::Equals)."""
    try:
        return text_of(first) == text_of(second)
    except ValueError:
        return bool(first == second)


def not_among(value: Any, allowed: list[Any]) -> str:
    """Return the first parameter value that is not allowed, "" if all are."""
    parts = value if isinstance(value, list) else [value]
    odd = (part for part in parts if not any(is_equal(part, choice) for choice in allowed))
    return next((repr(part) for part in odd), "")


def split_list(text: str) -> list[str]:
    """Split a comma-separated list."""
    return [part.strip() for part in text.split(",")]


def find_member(rows: Any, key: str) -> Any:
    """Return the value of a key, None if it is missing; YAML may have a number as key."""
    if not isinstance(rows, dict):
        return None
    return next((value for name, value in rows.items() if str(name) == key), None)


def fill_loop(value: Any, identifier: str, item: str) -> Any:
    """Return the body of Fn::ForEach for one item."""
    if isinstance(value, dict):
        if value == {"Ref": identifier}:
            return item
        return {
            fill_loop(key, identifier, item): fill_loop(part, identifier, item)
            for key, part in value.items()
        }
    if isinstance(value, list):
        return [fill_loop(part, identifier, item) for part in value]
    if not isinstance(value, str):
        return value
    plain = re.sub(r"[^A-Za-z0-9]", "", item)
    return value.replace(f"${{{identifier}}}", item).replace(f"&{{{identifier}}}", plain)


def typed_value(kind: str, written: str) -> Any:
    """Return a ``--param`` value in its parameter's type; None if it is not a number."""
    value = parse_value(written)
    if "List" in kind:
        return value if isinstance(value, list) else split_list(written)
    if kind == "Number":
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return value if is_number else None
    return value if isinstance(value, str) else written
