"""Read and check the settings of an operator: environment variables, and JSON files.

Each reader returns a valid value or raises ``SettingError``. The message is one line: the variable,
or the file with line and column or the key, then "got" the value, "wanted" its form. ``manage.py``
prints the line and ends. An empty variable counts as not set. URLs are shown without user, password
and query. Of any other value that may contain a secret, the message names only the type.
"""

from __future__ import annotations

import difflib
import ipaddress
import json
import math
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import SplitResult, urlsplit

from django.core.exceptions import ImproperlyConfigured

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pydantic import ValidationError

_ON, _OFF = ("1", "true", "yes", "on"), ("0", "false", "no", "off")
_HEADER = re.compile(r"[A-Za-z0-9]+(-[A-Za-z0-9]+)+")
_HOST = re.compile(r"\*|\.?[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\]")
REGION = re.compile(r"[a-z]{2}(-[a-z]+)+-\d")
"""The form of a region's name."""
_SHOWN = 80
_PREFIXES = "STATEYARD_", "STEPYARD_"  # the second until 0.2.0
_FOREIGN = re.compile(
    r"ST(ATE|EP)YARD_(\w+_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\d+_\w+)?)"  # of Kubernetes
    r"|STATEYARD_(TEST_\w+|SHARED|JSONATA_SUITE|REQUIRE_BROWSER)"  # of the tests
)
known_variables: set[str] = set()
"""The variables read so far; complete once the settings are loaded."""
_KINDS = {
    dict: "an object",
    list: "an array",
    str: "a text",
    bool: "true or false",
    int: "a number",
    float: "a number",
    type(None): "null",
}
_TYPES = {
    "string_type": "a text",
    "dict_type": "an object",
    "model_type": "an object",
    "list_type": "an array",
}
KINDS_OF_ENTRY = ("<text>", "<object>")
"""Pydantic adds these tags to the location of an error in a value that may be a text or an object.

Messages omit them.
"""
UNKNOWN = "unknown_name"
"""Type of the validation error for an unknown key; its context has the key under ``name``."""


class SettingError(ImproperlyConfigured, ValueError):
    """A variable or a file has an invalid value. The message is one line.

    ``words``: the line without the place. ``place``: the keys that lead to the value.
    """

    def __init__(
        self, where: object, got: object, expected: str, place: tuple[str, ...] = ()
    ) -> None:
        self.words, self.place = " ".join(f"got {got}, wanted {expected}".split()), place
        line = " ".join(f"{where}: got {got}, wanted {expected}".split())
        super().__init__(line)


# -- variables -------------------------------------------------------------------------------------


def read_text(name: str, default: str = "") -> str:
    """Return the text of a variable, unchecked."""
    known_variables.add(name)
    return os.environ.get(name) or default


def refuse_unknown_variables() -> None:
    """Raise ``SettingError`` for a variable ``STATEYARD_…`` or ``STEPYARD_…`` that nothing reads.

    Call it after all settings have been read. Ignored are the variables that Kubernetes sets for a
    service named ``stateyard`` (``STATEYARD_PORT``, ...) and the variables of this project's tests.
    """
    for name in sorted(os.environ):
        if not name.startswith(_PREFIXES) or name in known_variables or _FOREIGN.fullmatch(name):
            continue
        near = difflib.get_close_matches(name, known_variables, 1, cutoff=0.8)
        expected = f"{near[0]}, or one" if near else "one"
        raise SettingError(name, "an unknown variable", f"{expected} of docs/reference/settings.md")


def read_choice(name: str, choices: Iterable[str], default: str) -> str:
    """Return a variable whose value must be one of ``choices``."""
    value = read_text(name, default)
    if value not in choices:
        raise SettingError(name, _shorten_value(value), f"one of: {', '.join(choices)}")
    return value


def read_features(name: str, features: tuple[str, ...]) -> tuple[str, ...]:
    """Return the features in a comma-separated variable: all if it is not set, () for ``none``."""
    value = read_text(name).strip()
    if not value or value == "none":
        return () if value else features
    chosen = {feature.strip() for feature in value.split(",")}
    if unknown := sorted(chosen - set(features)):
        raise SettingError(name, _shorten_value(unknown[0]), f"none, or of: {', '.join(features)}")
    return tuple(feature for feature in features if feature in chosen)


def read_switch(name: str, *, default: bool = False) -> bool:
    """Return whether a variable switches something on. ``default``: if it is not set."""
    value = read_text(name, "1" if default else "0").strip().lower()
    if value not in (*_ON, *_OFF):
        raise SettingError(name, _shorten_value(value), "1 (on) or 0 (off)")
    return value in _ON


def read_number(name: str, default: float, least: float, most: float, unit: str) -> float:
    """Return a number from ``least`` to ``most``. ``unit``: ``seconds``, for the error message."""
    text = read_text(name, str(default))
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not least <= number <= most:
        expected = f"a number of {unit} from {least:g} to {most:g}"
        raise SettingError(name, _shorten_value(text), expected)
    return number


def read_whole_number(name: str, default: int, least: int, most: int) -> int:
    """Return a whole number from ``least`` to ``most``."""
    text = read_text(name, str(default)).strip()
    if not text.isascii() or not text.isdecimal() or not least <= int(text[:19]) <= most:
        raise SettingError(name, _shorten_value(text), f"a whole number from {least} to {most}")
    return int(text)


def read_region(name: str, default: str) -> str:
    """Return a variable that names a region of AWS."""
    region = read_text(name, default)
    if not REGION.fullmatch(region):
        raise SettingError(name, _shorten_value(region), "a region, as us-east-1")
    return region


def read_folder(name: str) -> Path | None:
    """Return the path of an existing folder, None if the variable is not set."""
    folder = read_text(name)
    if folder and not Path(folder).is_dir():
        raise SettingError(name, _shorten_value(folder), "an existing folder")
    return Path(folder).resolve() if folder else None


def read_folders(name: str) -> list[Path]:
    """Return the paths of existing folders in a comma-separated variable."""
    folders = [folder.strip() for folder in read_text(name).split(",") if folder.strip()]
    for folder in folders:
        if not Path(folder).is_dir():
            raise SettingError(name, _shorten_value(folder), "existing folders by comma")
    return [Path(folder).resolve() for folder in folders]


def read_hosts(name: str) -> list[str]:
    """Return the host names in a comma-separated variable."""
    hosts = [host.strip() for host in read_text(name).split(",") if host.strip()]
    for host in hosts:
        if not _HOST.fullmatch(host):
            expected = "host names by comma, without scheme and port, as yard.example.com"
            raise SettingError(name, _shorten_value(host), expected)
    return hosts


def read_profiles(name: str) -> dict[str, str]:
    """Return project -> AWS profile of a variable such as ``orders=production,*=staging``."""
    pairs = [pair.strip() for pair in read_text(name).split(",") if pair.strip()]
    profiles = {}
    for pair in pairs:
        project, equals, profile = (part.strip() for part in pair.partition("="))
        if not (project and equals and profile) or project in profiles:
            raise SettingError(name, _shorten_value(pair), "PROJECT=PROFILE, each project once")
        profiles[project] = profile
    return profiles


def read_proxies(name: str) -> list[str]:
    """Return the IP addresses and networks of trusted proxies in a comma-separated variable."""
    proxies = [proxy.strip() for proxy in read_text(name).split(",") if proxy.strip()]
    for proxy in proxies:
        try:
            ipaddress.ip_network(proxy)
        except ValueError:
            expected = "IP addresses or networks by comma, as 127.0.0.1,10.0.0.0/8"
            raise SettingError(name, _shorten_value(proxy), expected) from None
    return proxies


def read_header_name(name: str) -> str:
    """Return the name of an HTTP header in a variable."""
    header = read_text(name)
    if header and not _HEADER.fullmatch(header):
        raise SettingError(
            name, _shorten_value(header), "the name of a header, as X-Forwarded-User"
        )
    return header


def read_web_address(name: str) -> str:
    """Return a variable that is the address of a server, "" if it is not set."""
    address = read_text(name)
    if address and not is_web_address(address):
        raise SettingError(name, _shorten_value(address), "http://host:port or https://host")
    return address


def read_sink(name: str) -> str:
    """Return a variable that names a file or a web address to send lines to, "" if it is not set.

    Plain HTTP goes to this machine only, as to a collector beside the server.
    """
    address, expected = read_text(name), "file:///folder/name or https://host/path"
    if not address:
        return ""
    parts = parse_address(name, address, ("file", "http", "https"), expected)
    if parts.scheme == "file":
        is_path = not parts.netloc and not parts.path.endswith("/")
        valid = is_path and len(parts.path) > 1 and not parts.query and not parts.fragment
    else:
        valid = bool(parts.hostname) and (
            parts.scheme == "https" or parts.hostname in ("localhost", "127.0.0.1", "::1")
        )
    if not valid:
        raise SettingError(name, _shorten_value(address), expected)
    return address


def is_web_address(address: str) -> bool:
    """Return whether a text is an ``http`` or ``https`` URL with a host."""
    parts = split_address(address)
    return parts is not None and parts.scheme in ("http", "https") and bool(parts.hostname)


def parse_address(name: str, address: str, schemes: Iterable[str], expected: str) -> SplitResult:
    """Parse a URL with one of the schemes, such as ``postgres``; it may contain a password."""
    parts = split_address(address)
    if parts is None:
        raise SettingError(name, "a malformed address or an invalid port", expected)
    if parts.scheme not in schemes:
        got = f"{parts.scheme}://" if parts.scheme else "something without a scheme"
        raise SettingError(name, got, expected)
    return parts


def split_address(address: str) -> SplitResult | None:
    """Return the parts of a URL; None if it is malformed or its port is no port number."""
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError:
        return None
    return None if port == 0 else parts


# -- JSON ------------------------------------------------------------------------------------------


class Shape(Protocol):
    """The interface of validators: pydantic's ``TypeAdapter`` for a shape of ``setting_shapes``."""

    def validate_python(self, value: Any, /, *, strict: bool) -> object:
        """Check a value; raise pydantic's ``ValidationError``."""


def read_json_variable(name: str, shape: Shape) -> dict[str, Any]:
    """Return the JSON object in a variable, {} if it is not set."""
    text = read_text(name)
    return _object(text, name, shape) if text else {}


def read_json_file(path: Path, shape: Shape, name: str = "") -> dict[str, Any]:
    """Return the JSON object in a file, {} if the file is missing.

    ``name``: the variable whose value is ``path``, "" for a file of the data folder. If a variable
    names the file, a missing file is a ``SettingError``.
    """
    where = f"{name}: {path}" if name else str(path)
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        if name:
            raise SettingError(name, _shorten_value(str(path)), "an existing file") from None
        return {}
    except UnicodeDecodeError as error:
        raise SettingError(where, f"a byte at {error.start} that is no UTF-8", "JSON") from None
    except OSError as error:
        raise SettingError(where, error.strerror, "a file that can be read") from None
    return _object(text, where, shape)


def _object(text: str, where: str, shape: Shape) -> dict[str, Any]:
    """Parse a JSON object and check it against the shape; return it as written."""
    try:
        value = json.loads(text, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        place = f"{where}: line {error.lineno}, column {error.colno}"
        raise SettingError(place, f"no JSON ({error.msg})", "a JSON object") from None
    except (ValueError, RecursionError) as error:
        raise SettingError(where, f"no JSON ({error})", "a JSON object") from None
    if not isinstance(value, dict):
        raise SettingError(where, _KINDS[type(value)], "a JSON object")
    check_object(value, where, shape)
    return value


def check_object(value: Mapping[str, Any], where: str, shape: Shape) -> None:
    """Check a value against a shape; raise ``SettingError``."""
    from pydantic import ValidationError

    try:
        shape.validate_python(value, strict=True)
    except ValidationError as error:
        raise _shape_error(where, error) from None


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not valid JSON")


def _shape_error(where: str, error: ValidationError) -> SettingError:
    """Return the first validation error as a ``SettingError`` that names the key."""
    first = error.errors(include_url=False)[0]
    kind, value = first["type"], first["input"]
    parts = [str(part) for part in first["loc"] if part not in KINDS_OF_ENTRY]
    place = ": ".join([where, *parts])
    if kind == UNKNOWN:
        unknown = str(first["ctx"]["name"])
        keys = (*parts, unknown)
        return SettingError(f"{place}: {unknown}", "an unknown name", first["msg"], keys)
    if kind == "value_error":  # our own validators say what they want
        got = _shorten_value(value) if isinstance(value, str) else _KINDS[type(value)]
        return SettingError(place, got, str(first["ctx"]["error"]), tuple(parts))
    expected = _TYPES.get(kind, first["msg"].removeprefix("Input should be "))
    return SettingError(place, _KINDS[type(value)], expected, tuple(parts))


def _shorten_value(text: str) -> str:
    """Return a value as a message shows it: short, without user, password and query."""
    bare = re.sub(r"\?.*", "?...", re.sub(r"//.*@", "//...@", text))
    return repr(bare if len(bare) <= _SHOWN else f"{bare[:_SHOWN]}...")


class StartupFile:
    """A JSON file as read at startup; changes take effect at the next start.

    ``entries``: the object in the file, {} if the file is missing. An invalid file raises
    ``SettingError``.
    """

    def __init__(self, path: Path, shape: Shape) -> None:
        self.path = path
        self._shape = shape
        self.entries = read_json_file(path, shape)

    def find_change(self) -> tuple[bool, str]:
        """Return whether the file has changed since startup, and the error in it, "" if valid."""
        try:
            return read_json_file(self.path, self._shape) != self.entries, ""
        except SettingError as error:
            return True, str(error).replace(str(self.path), self.path.name)
