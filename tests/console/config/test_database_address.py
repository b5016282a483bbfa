"""The address of the PostgreSQL: each parameter that libpq reads is obeyed or refused."""

from __future__ import annotations

import pytest
from psycopg.pq import Conninfo

from console.config.database_address import ALLOWED, parse_database_address
from console.config.environment import SettingError

NAME = "STATEYARD_DATABASE_URL"


def parsed(rest: str) -> dict[str, str]:
    """Return the parameters of an address."""
    return parse_database_address(NAME, f"postgres://{rest}")


def test_parts_are_decoded_once() -> None:
    """User, password, name, socket folder and values may have any character, also a plus sign."""
    address = parsed("u%40:p%2525+%2F@/a%20b?host=%2Frun%2Fx+y&options=-c%20search_path%3Da%2Cb")
    assert address == {
        "user": "u@",
        "password": "p%25+/",
        "dbname": "a b",
        "host": "/run/x+y",
        "options": "-c search_path=a,b",
    }


def test_several_hosts_mean_the_one_that_takes_writes() -> None:
    """Libpq's default, any, would stay with the first one that answers, even a standby."""
    address = parsed("u@a:1,[::1]:2/db")
    assert (address["host"], address["port"]) == ("a,::1", "1,2")
    assert address["target_session_attrs"] == "read-write"
    assert parsed("u@a,b/db?target_session_attrs=primary")["target_session_attrs"] == "primary"
    assert "target_session_attrs" not in parsed("u@a/db")


@pytest.mark.parametrize(
    "key", sorted({o.keyword.decode() for o in Conninfo.get_defaults()} - set(ALLOWED))
)
def test_another_parameter_of_libpq_is_refused_by_its_name(key: str) -> None:
    """The line names what is allowed."""
    with pytest.raises(SettingError) as caught:
        parsed(f"u:hush@h/db?{key}=hush")
    line = str(caught.value)
    assert line.startswith(f"{NAME}: {key}: got an unknown name, wanted one of host, port, ")
    assert "sslmode" in line
    assert "hush" not in line


@pytest.mark.parametrize(
    ("rest", "said"),
    [
        ("h/db?sslmod=require", "sslmod: got an unknown name"),
        ("h/db?ssl=true", "ssl: got an unknown name"),
        ("h/db?ssl%6dode=TLS", "sslmode: got 'TLS', wanted one of disable, allow"),
        ("h/db?sslmode=", "sslmode: got '', wanted one of disable"),
        ("h/db?sslmode=require&sslmode=disable", "sslmode: got it twice"),
        ("h/db?target_session_attrs=standby", "wanted any, read-write or primary: this server"),
        ("h/db?channel_binding=yes", "got 'yes', wanted one of disable, prefer, require"),
        ("h/db?gssencmode=allow", "got 'allow', wanted one of disable, prefer, require"),
        ("h/db?connect_timeout=0", "connect_timeout: got '0', wanted a whole number of seconds"),
        ("h/db?connect_timeout=2.5", "connect_timeout: got '2.5'"),
        ("h/db?keepalives_idle=-1", "keepalives_idle: got '-1', wanted a whole number"),
        ("h/db?keepalives=yes", "keepalives: got 'yes', wanted one of 0, 1"),
        (f"h/db?application_name={'a' * 33}", "wanted at most 32 printable ASCII characters"),
        ("h/db?application_name=%C3%A4", "wanted at most 32 printable ASCII characters"),
        ("h/db?sslrootcert=system&sslmode=require", "wanted verify-full, because sslrootcert is"),
        ("u:hush@a,,b/db", "got a host without a name"),
        ("u:hush@a:1,b:x/db", "got an address with an invalid port"),
        ("u:hush@a:70000/db", "got an address with an invalid port"),
        ("a/db?host=a,b,c&port=1,2", "got 3 hosts and 2 ports, wanted a port for each"),
        ("u:hu%zzsh@a/db", "got an address that libpq cannot read"),
        ("u:hush?hush&hush@a/?", "got an address without the name of a database"),
        ("h/db?=hush", "a parameter: got an unknown name"),
    ],
)
def test_what_cannot_be_is_one_line_without_a_secret(rest: str, said: str) -> None:
    """The line names the parameter, what was got, and what is allowed."""
    with pytest.raises(SettingError) as caught:
        parsed(rest)
    line = str(caught.value)
    assert said in line
    assert line.startswith(NAME)
    assert "hush" not in line
    assert "\n" not in line
