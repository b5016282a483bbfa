"""What operators set: environment variables, and files of the data folder.

Each reader returns a value that can be used, or raises ``SettingError``. Its message is one line:
the variable, or the file with line and column or the place in it, then what was got and what was
wanted. ``manage.py`` ends with that line. An empty variable is one that is not set. No message has
a secret: of what may hold one only the kind is told.
"""

from __future__ import annotations

import difflib
import ipaddress
import json
import math
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, urlsplit

from django.core.exceptions import ImproperlyConfigured
from pydantic import TypeAdapter, ValidationError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pydantic import TypeAdapter

_ON, _OFF = ("1", "true", "yes", "on"), ("0", "false", "no", "off")
_HOST = re.compile(r"\*|\.?[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\]")
_REGION = re.compile(r"[a-z]{2}(-[a-z]+)+-\d")
_SHOWN = 80
_PREFIX = "STATEYARD_"
_FOREIGN = re.compile(
    r"STATEYARD_(\w+_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\d+_\w+)?)"  # of Kubernetes
    r"|STATEYARD_(TEST_\w+|SHARED|JSONATA_SUITE|REQUIRE_BROWSER)"  # of the tests
)
_known: set[str] = set()
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
"""Parts of a place that stand for the kind of an entry that may be either: no message has them."""
UNKNOWN = "unknown_name"
"""The type of error that shapes raise for a member they do not know: ``name`` in its context."""


class SettingError(ImproperlyConfigured, ValueError):
    """A variable or a file has a value that cannot be. The message is one line."""

    def __init__(self, where: object, got: object, wanted: str) -> None:
        line = " ".join(f"{where}: got {got}, wanted {wanted}".split())
        super().__init__(line)


# -- variables -------------------------------------------------------------------------------------


def read_text(name: str, default: str = "") -> str:
    """Return a variable as it is."""
    _known.add(name)
    return os.environ.get(name) or default


def refuse_unknown_variables() -> None:
    """Raise ``SettingError`` for a variable ``STATEYARD_…`` that no setting reads.

    Call it when all settings were read. Kubernetes sets variables of its own for a service named
    ``stateyard``; they are ignored, as are those of this project's tests.
    """
    for name in sorted(os.environ):
        if not name.startswith(_PREFIX) or name in _known or _FOREIGN.fullmatch(name):
            continue
        near = difflib.get_close_matches(name, _known, 1, cutoff=0.8)
        wanted = f"{near[0]}, or one" if near else "one"
        raise SettingError(name, "an unknown variable", f"{wanted} of docs/reference/settings.md")


def read_choice(name: str, known: Iterable[str], default: str) -> str:
    """Return a variable that has one of a few values."""
    given = read_text(name, default)
    if given not in known:
        raise SettingError(name, _quoted(given), f"one of: {', '.join(known)}")
    return given


def read_features(name: str, known: tuple[str, ...]) -> tuple[str, ...]:
    """Return a variable that chooses features by comma: all if it is not set, or ``none``."""
    given = read_text(name).strip()
    if not given or given == "none":
        return () if given else known
    chosen = {one.strip() for one in given.split(",")}
    if unknown := sorted(chosen - set(known)):
        raise SettingError(name, _quoted(unknown[0]), f"none, or of: {', '.join(known)}")
    return tuple(one for one in known if one in chosen)


def read_switch(name: str) -> bool:
    """Tell whether a variable switches something on."""
    given = read_text(name, "0").strip().lower()
    if given not in (*_ON, *_OFF):
        raise SettingError(name, _quoted(given), "1 (on) or 0 (off)")
    return given in _ON


def read_number(name: str, default: float, least: float, most: float, unit: str) -> float:
    """Return a variable that is a number, with both limits allowed. ``unit``: of what."""
    given = read_text(name, str(default))
    try:
        found = float(given)
    except ValueError:
        found = math.nan
    if not least <= found <= most:
        wanted = f"a number of {unit} from {least:g} to {most:g}"
        raise SettingError(name, _quoted(given), wanted)
    return found


def read_whole_number(name: str, default: int, least: int, most: int) -> int:
    """Return a variable that is a whole number, with both limits allowed."""
    given = read_text(name, str(default)).strip()
    if not given.isascii() or not given.isdecimal() or not least <= int(given[:19]) <= most:
        raise SettingError(name, _quoted(given), f"a whole number from {least} to {most}")
    return int(given)


def read_region(name: str, default: str) -> str:
    """Return a variable that names a region of AWS."""
    given = read_text(name, default)
    if not _REGION.fullmatch(given):
        raise SettingError(name, _quoted(given), "a region, as us-east-1")
    return given


def read_folder(name: str) -> Path | None:
    """Return a variable that names a folder, None if it is not set. The folder must be there."""
    given = read_text(name)
    if given and not Path(given).is_dir():
        raise SettingError(name, _quoted(given), "a folder that is there")
    return Path(given).resolve() if given else None


def known_variables() -> frozenset[str]:
    """Return the variables that were read so far: of all settings, once they are loaded."""
    return frozenset(_known)


def read_hosts(name: str) -> list[str]:
    """Return a variable that lists host names by comma."""
    found = [host.strip() for host in read_text(name).split(",") if host.strip()]
    for host in found:
        if not _HOST.fullmatch(host):
            wanted = "host names by comma, without scheme and port, as yard.example.com"
            raise SettingError(name, _quoted(host), wanted)
    return found


def read_proxies(name: str) -> list[str]:
    """Return a variable that lists the addresses and networks of trusted proxies by comma."""
    found = [one.strip() for one in read_text(name).split(",") if one.strip()]
    for one in found:
        try:
            ipaddress.ip_network(one)
        except ValueError:
            wanted = "IP addresses or networks by comma, as 127.0.0.1,10.0.0.0/8"
            raise SettingError(name, _quoted(one), wanted) from None
    return found


def read_web_address(name: str) -> str:
    """Return a variable that is the address of a server, "" if it is not set."""
    given = read_text(name)
    if given and not is_web_address(given):
        raise SettingError(name, _quoted(given), "http://host:port or https://host")
    return given


def is_web_address(given: str) -> bool:
    """Tell whether a text begins as the address of something in the web: scheme, host, port."""
    parts = split_address(given)
    return parts is not None and parts.scheme in ("http", "https") and bool(parts.hostname)


def parse_address(name: str, given: str, schemes: Iterable[str], wanted: str) -> SplitResult:
    """Parse an address with one of the schemes; a password is allowed."""
    parts = split_address(given)
    if parts is None:
        raise SettingError(name, "an address whose port is none", wanted)
    if parts.scheme not in schemes:
        got = f"{parts.scheme}://" if parts.scheme else "something without a scheme"
        raise SettingError(name, got, wanted)
    return parts


def split_address(given: str) -> SplitResult | None:
    """Return the parts of an address; None if it has a port that is none, or is no address."""
    try:
        parts = urlsplit(given)
        port = parts.port
    except ValueError:
        return None
    return None if port == 0 else parts


# -- JSON ------------------------------------------------------------------------------------------


def read_json_variable(name: str, shape: TypeAdapter[Any]) -> dict[str, Any]:
    """Return the object in a variable, {} if it is not set."""
    return _object(read_text(name, "{}"), name, shape)


def read_json_file(path: Path, shape: TypeAdapter[Any], name: str = "") -> dict[str, Any]:
    """Return the object in a file, {} if there is none. ``name``: of the variable that names it.

    A file that a variable names must be there.
    """
    where = f"{name}: {path}" if name else str(path)
    try:
        given = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        if name:
            raise SettingError(name, _quoted(str(path)), "a file that is there") from None
        return {}
    except UnicodeDecodeError as error:
        raise SettingError(where, f"a byte at {error.start} that is no UTF-8", "JSON") from None
    except OSError as error:
        raise SettingError(where, error.strerror, "a file that can be read") from None
    return _object(given, where, shape)


def _object(given: str, where: str, shape: TypeAdapter[Any]) -> dict[str, Any]:
    """Return a JSON object as it is written, once it has the shape."""
    try:
        found = json.loads(given, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        place = f"{where}: line {error.lineno}, column {error.colno}"
        raise SettingError(place, f"no JSON ({error.msg})", "a JSON object") from None
    except (ValueError, RecursionError) as error:
        raise SettingError(where, f"no JSON ({error})", "a JSON object") from None
    if not isinstance(found, dict):
        raise SettingError(where, _KINDS[type(found)], "a JSON object")
    try:
        shape.validate_python(found, strict=True)
    except ValidationError as error:
        raise _misshapen(where, error) from None
    return found


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no number of JSON")


def _misshapen(where: str, error: ValidationError) -> SettingError:
    """Return the first thing that is wrong with an object, by its place in it."""
    first = error.errors(include_url=False)[0]
    kind, given = first["type"], first["input"]
    parts = [str(part) for part in first["loc"] if part not in KINDS_OF_ENTRY]
    place = ": ".join([where, *parts])
    if kind == UNKNOWN:
        return SettingError(f"{place}: {first['ctx']['name']}", "an unknown name", first["msg"])
    if kind == "value_error":  # our own validators say what they want
        got = _quoted(given) if isinstance(given, str) else _KINDS[type(given)]
        return SettingError(place, got, str(first["ctx"]["error"]))
    wanted = _TYPES.get(kind, first["msg"].removeprefix("Input should be "))
    return SettingError(place, _KINDS[type(given)], wanted)


def _quoted(given: str) -> str:
    """Return a value as a message shows it: short, without user, password and query."""
    bare = re.sub(r"\?.*", "?...", re.sub(r"//.*@", "//...@", given))
    return repr(bare if len(bare) <= _SHOWN else f"{bare[:_SHOWN]}...")


class StartupFile:
    """A JSON file as read at startup; changes take effect at the next start.

    ``entries``: that object, {} if there was no file. Raise ``SettingError`` if it is no good.
    """

    def __init__(self, path: Path, shape: TypeAdapter[Any]) -> None:
        self.path = path
        self._shape = shape
        self.entries = read_json_file(path, shape)

    def find_change(self) -> tuple[bool, str]:
        """Return whether the file says something else now, and why a start would refuse it."""
        try:
            return read_json_file(self.path, self._shape) != self.entries, ""
        except SettingError as error:
            return True, str(error).replace(str(self.path), self.path.name)
