"""Parse the PostgreSQL URL in ``STATEYARD_DATABASE_URL``: parameters of libpq, with checks."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import unquote

import psycopg
from psycopg.conninfo import conninfo_to_dict

from console.config.environment import SettingError

if TYPE_CHECKING:
    from collections.abc import Mapping

WANTED = "postgres://user:password@host:port/name, special characters percent-encoded"
NAME_LENGTH = 32
"""Maximum length of application_name: PostgreSQL cuts names at 63 characters."""
_TLS = ("sslmode", "sslrootcert", "sslcert", "sslkey", "sslpassword", "sslcrl")
_TLS_VERSIONS = ("ssl_min_protocol_version", "ssl_max_protocol_version")
_SECONDS = ("keepalives_idle", "keepalives_interval", "keepalives_count", "tcp_user_timeout")
_PLACE = ("host", "port", "dbname", "user", "password", "passfile")
_MODES = ("disable", "prefer", "require")
_PROTOCOLS = ("TLSv1.2", "TLSv1.3")
_CHOICES: dict[str, tuple[tuple[str, ...], str]] = {
    "sslmode": (("disable", "allow", "prefer", "require", "verify-ca", "verify-full"), ""),
    "ssl_min_protocol_version": (_PROTOCOLS, ""),
    "ssl_max_protocol_version": (_PROTOCOLS, ""),
    "target_session_attrs": (
        ("any", "read-write", "primary"),
        "any, read-write or primary: this server writes",
    ),
    "keepalives": (("0", "1"), ""),
    "gssencmode": (_MODES, ""),
    "channel_binding": (_MODES, ""),
}
ALLOWED = (
    *_PLACE,
    *_TLS,
    *_TLS_VERSIONS,
    *("target_session_attrs", "application_name", "options", "connect_timeout", "keepalives"),
    *_SECONDS,
    *("gssencmode", "channel_binding"),
)


def parse_database_address(name: str, url: str) -> dict[str, str]:
    """Return the libpq parameters of a URL; raise ``SettingError`` for unsupported ones.

    ``name``: the variable's name. Messages contain no secrets.
    """
    scheme, separator, rest = url.partition("://")
    if not separator or scheme not in ("postgres", "postgresql"):
        got = f"{scheme}://" if separator else "something without a scheme"
        raise SettingError(name, got, WANTED)
    _check_names(name, rest)
    try:
        parameters = {key: str(value) for key, value in conninfo_to_dict(url).items()}
    except psycopg.ProgrammingError:
        raise SettingError(name, "an address that libpq cannot read", WANTED) from None
    if not parameters.get("dbname"):
        raise SettingError(name, "an address without the name of a database", WANTED)
    _check_hosts(name, parameters)
    _check_values(name, parameters)
    if "," in parameters.get("host", ""):
        parameters.setdefault("target_session_attrs", "read-write")
    if parameters.get("sslrootcert") == "system" and "sslmode" not in parameters:
        parameters["sslmode"] = "verify-full"  # as libpq does
    return {key: value for key, value in parameters.items() if value}


def _check_names(name: str, rest: str) -> None:
    """Refuse unknown and repeated parameters. ``rest``: the URL after the scheme."""
    user = re.match(r"[^@/]*@", rest)  # a password may have a question mark, as libpq reads it
    query = rest[user.end() if user else 0 :].partition("?")[2]
    keys = [unquote(pair.partition("=")[0]) for pair in query.split("&") if pair]
    for key in keys:
        key_text = key if re.fullmatch(r"[A-Za-z_.]{1,40}", key) else "a parameter"
        if key not in ALLOWED:
            raise SettingError(
                f"{name}: {key_text}", "an unknown name", f"one of {', '.join(ALLOWED)}"
            )
        if keys.count(key) > 1:
            raise SettingError(f"{name}: {key_text}", "it twice", "each parameter once")


def _check_hosts(name: str, parameters: Mapping[str, str]) -> None:
    hosts, ports = parameters.get("host", "").split(","), parameters.get("port", "").split(",")
    if len(hosts) > 1 and not all(hosts):
        raise SettingError(name, "a host without a name", WANTED)
    if not all(_is_whole(port, 1, 65535) for port in ports if port):
        raise SettingError(name, "an address with an invalid port", WANTED)
    if len(ports) not in (1, len(hosts)):
        raise SettingError(name, f"{len(hosts)} hosts and {len(ports)} ports", "a port for each")


def _check_values(name: str, parameters: Mapping[str, str]) -> None:
    def refuse(key: str, expected: str) -> None:
        raise SettingError(f"{name}: {key}", repr(parameters[key][:80]), expected)

    for key, (choices, expected) in _CHOICES.items():
        if parameters.get(key, choices[0]) not in choices:
            refuse(key, expected or f"one of {', '.join(choices)}")
    for key in _SECONDS:
        if not _is_whole(parameters.get(key, "0"), 0, 3_600_000):
            refuse(key, "a whole number from 0 to 3600000")
    if not _is_whole(parameters.get("connect_timeout", "5"), 1, 60):
        refuse("connect_timeout", "a whole number of seconds from 1 to 60")
    if not re.fullmatch(rf"[ -~]{{0,{NAME_LENGTH}}}", parameters.get("application_name", "")):
        refuse("application_name", f"at most {NAME_LENGTH} printable ASCII characters")
    is_system = parameters.get("sslrootcert") == "system"
    if is_system and parameters.get("sslmode", "verify-full") != "verify-full":
        refuse("sslmode", "verify-full, because sslrootcert is system")


def _is_whole(text: str, least: int, most: int) -> bool:
    return text.isascii() and text.isdecimal() and least <= int(text[:9]) <= most
