"""The settings for a team's host are safe, and a bad setting is named at the start."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from console.config import local_options
from tests.test_documentation import variables

ROOT = Path(__file__).parents[3]
OWN = ("STATEYARD_", "DJANGO_", *local_options.VARIABLES)


def check(folder: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """Run Django's check for deployment in a process of its own."""
    return run(folder, "check", "--deploy", "--fail-level", "WARNING", **env)


def run(folder: Path, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run a command with a data folder and nothing else that the shell of the tests sets."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith(OWN)}
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT,
        env={**environ, "STATEYARD_DATA": str(folder), **env},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


TEAM = {
    "STATEYARD_HTTPS": "1",
    "STATEYARD_PROXIES": "172.18.0.1",
    "STATEYARD_SECRET": "5" * 64,
    "STATEYARD_URL": "http://web:8083",
    "STATEYARD_DATABASE_URL": "postgres://stateyard:password@postgres/stateyard",
}


@pytest.mark.slow
def test_nothing_is_to_be_said_of_a_team_s_host(tmp_path: Path) -> None:
    """With what Compose sets, and the proxy, no warning is left and none is silenced."""
    path = tmp_path / "targets.json"
    path.write_text("{}", encoding="utf-8")
    path.chmod(0o600)
    done = check(tmp_path, **TEAM)
    assert done.returncode == 0, done.stderr
    assert "no issues (0 silenced)" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("lacking", "ids"),
    [
        ("STATEYARD_HTTPS", {"W001"}),
        ("STATEYARD_SECRET", {"W002"}),
        ("STATEYARD_PROXIES", {"W006"}),
        ("STATEYARD_URL", {"W003"}),
        ("STATEYARD_DATABASE_URL", {"W004"}),
    ],
)
def test_what_a_team_s_host_lacks_is_told(tmp_path: Path, lacking: str, ids: set[str]) -> None:
    """Each by an id of its own and by its name; nothing else is said."""
    done = check(tmp_path, **{name: value for name, value in TEAM.items() if name != lacking})
    assert done.returncode != 0
    assert set(re.findall(r"\((?:stateyard|security)\.(\w+)\)", done.stderr)) == ids
    assert lacking in done.stderr


@pytest.mark.slow
def test_secret_files_that_others_may_read_are_told(tmp_path: Path) -> None:
    """By path and mode, those alone; the URL of the API is not missed where one process is all."""
    modes = {
        "secret": 0o640,  # mended when it is read
        "credentials": 0o640,
        "login-url": 0o600,
        "stateyard.sqlite3-wal": 0o604,
        "quotas.json": 0o644,
    }
    for name, mode in modes.items():
        path = tmp_path / name
        path.write_text("{}" if name == "quotas.json" else "x" * 64, encoding="utf-8")
        path.chmod(mode)
    done = check(tmp_path, STATEYARD_HTTPS="1")
    told = {"W002", "W004", "W005", "W006"}
    assert set(re.findall(r"\((?:stateyard|security)\.(\w+)\)", done.stderr)) == told
    listed = f"{tmp_path / 'credentials'} (0640), {tmp_path / 'stateyard.sqlite3-wal'} (0604)."
    assert f"may read or change: {listed}" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("setting", "name"),
    [
        ("SECURE_HSTS_SECONDS = 0", "W004"),
        ("SESSION_COOKIE_SECURE = False", "W012"),
        ("SECRET_KEY = 'short'", "W009"),
    ],
)
def test_a_worse_setting_would_be_told(tmp_path: Path, setting: str, name: str) -> None:
    """The check looks at what is set, so it can fail."""
    (tmp_path / "worse.py").write_text(f"from console.config.settings import *\n{setting}\n")
    done = check(tmp_path, **TEAM, DJANGO_SETTINGS_MODULE="worse", PYTHONPATH=str(tmp_path))
    assert done.returncode != 0
    assert f"security.{name}" in done.stderr


def refused(done: subprocess.CompletedProcess[str], where: str, got: str, expected: str) -> None:
    """Check that a command ended with one line that says where, got and wanted."""
    assert done.returncode != 0
    assert done.stdout == ""
    assert done.stderr.startswith("stateyard: ")
    named(done.stderr.removeprefix("stateyard: "), where, got, expected)


def named(message: str, where: str, got: str, expected: str) -> None:
    """Check that a message is one line that says where, got and wanted."""
    line, *more = message.splitlines()
    assert more == []
    assert line.startswith(f"{where}: got {got}"), line
    assert expected in line.partition(", wanted ")[2], line


# As manage.py reads the settings, once for each of many environments: a process each takes long.
READ = """
import importlib, json, os, sys
found = []
for given in json.load(sys.stdin):
    kept = dict(os.environ)
    os.environ.update(given)
    sys.modules.pop("console.config.settings", None)
    try:
        importlib.import_module("console.config.settings")
        found.append("")
    except (ValueError, OSError) as error:
        found.append(str(error))
    os.environ.clear()
    os.environ.update(kept)
json.dump(found, sys.stdout)
"""


def read(cases: list[dict[str, str]]) -> list[str]:
    """Return what manage.py says of each environment, "" if it has nothing to say."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith(OWN)}
    done = subprocess.run(
        [sys.executable, "-c", READ],
        cwd=ROOT,
        env=environ,
        input=json.dumps(cases),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    messages: list[str] = json.loads(done.stdout)
    return messages


@pytest.mark.slow
@pytest.mark.parametrize("command", ["up", "web", "worker", "check"])
def test_no_command_starts_with_a_bad_variable(tmp_path: Path, command: str) -> None:
    """One line and no traceback, whatever is started."""
    done = run(tmp_path, command, STATEYARD_LEASE_S="ten")
    refused(done, "STATEYARD_LEASE_S", "'ten'", "a number of seconds from 1 to 3600")


@pytest.mark.slow
@pytest.mark.parametrize("command", ["up", "web", "worker", "check"])
def test_no_command_starts_with_a_bad_file(tmp_path: Path, command: str) -> None:
    """The line has the place in the file."""
    path = tmp_path / "functions.json"
    path.write_text('{\n  "add": "shop:add",\n  "sub" "shop:sub"\n}\n', encoding="utf-8")
    done = run(tmp_path, command)
    refused(done, f"{path}: line 3, column 9", "no JSON (Expecting ':' delimiter)", "a JSON object")


@pytest.mark.slow
def test_good_values_are_taken(tmp_path: Path) -> None:
    """Every variable and file at once, in the ways they may be written."""
    files = {
        "functions.json": {
            "add": "shop.math:add",
            "b-*": "https://127.0.0.1/x",
            "projects": {"web": {"add": "web:add"}},
        },
        "targets.json": {
            "*": {"endpoint_url": "http://127.0.0.1:5000", "access_key_id": "x", "region": None},
            "s3": {},
            "http": {
                "endpoints": ["https://api.example.com"],
                "connections": {
                    "shop": {"name": "X-Key", "value": "v"},
                    "old": {"type": "BASIC", "username": "u", "password": "p"},
                    "crm": {
                        "type": "OAUTH_CLIENT_CREDENTIALS",
                        "OAuthParameters": {
                            "AuthorizationEndpoint": "https://login.example.com/token",
                            "HttpMethod": "POST",
                            "ClientParameters": {"ClientID": "yard", "ClientSecret": "s"},
                            "OAuthHttpParameters": {
                                "BodyParameters": [{"Key": "scope", "Value": "read"}]
                            },
                        },
                        "InvocationHttpParameters": {
                            "HeaderParameters": [
                                {"Key": "X-Team", "Value": "t", "IsValueSecret": True}
                            ],
                            "QueryStringParameters": [{"Key": "v", "Value": "2"}],
                            "BodyParameters": [],
                        },
                    },
                },
            },
            "kubernetes": {"endpoints": ["https://kube:6443"], "token": "t"},
            "machines": {"Orders": {"functions": {"add": "a:b"}, "sqs": {"profile": "p"}}},
            "projects": {"web": {"*": {}, "machines": {"Orders": {"functions": {"x": "y:z"}}}}},
        },
        "quotas.json": {
            "start_execution": {"bucket": 800, "refill": 0.5},
            "open_executions": None,
            "projects": {"load": {"activities": 3}},
        },
        "permissions.json": {"deny": {"orders": ["sqs:SendMessage", "s3:*", "*"]}},
        "oidc.json": {
            "corp": {
                "name": "Corp SSO",
                "issuer": "https://login.example.com/realms/corp",
                "client_id": "stateyard",
                "client_secret": "s",
                "scopes": ["groups"],
                "name_claim": "upn",
                "groups_claim": "realm_access.roles",
                "groups": {"*": {"default": "viewer"}, "dev": {"default": "editor"}},
                "administrators": ["platform"],
            },
            "here": {"issuer": "http://127.0.0.1:8080", "client_id": "stateyard"},
        },
        "MockConfigFile.json": {
            "StateMachines": {"M": {"TestCases": {"Good": {"Call": "Answer"}}}},
            "MockedResponses": {"Answer": {"0": {"Return": 1}, "1-2": {"Throw": {"Error": "E"}}}},
        },
    }
    for name, value in files.items():
        (tmp_path / name).write_text(json.dumps(value), encoding="utf-8")
    variables = {
        "DATABASE_CONNECTIONS": "3",
        "HOSTS": "yard.example.com, .example.org,[::1],web",
        "HTTPS": "true",
        "EXPRESS_EVENTS": "",
        "PROXIES": "127.0.0.1, 10.0.0.0/8,::1",
        "REGION": "us-gov-west-1",
        "LIMITS": "2019",
        "LOG": "json",
        "RETENTION_DAYS": "0.5",
        "LEASE_S": "2.5",
        "PROCESSORS": "all",
        "URL": "http://web:8083",
        "MAIL": "smtp://u:p@mail.example.com:587/?from=a@b",
        "FUNCTIONS": "{}",
        "TARGETS": "{}",
        "QUOTAS": "{}",
        "METRICS_TOKEN": "t",
        "OIDC": "{}",
        "PASSWORDS": "1",
        "SECRET": "x" * 32,
        "DATABASE_URL": "postgres://u:p%40@127.0.0.1:5433/name?host=/tmp",
    }
    done = run(
        tmp_path, "check", **{f"STATEYARD_{name}": value for name, value in variables.items()}
    )
    assert (done.returncode, done.stderr) == (0, "")


VARIABLES = [
    ("STATEYARD_CONFIG", "/no/such/folder", "'/no/such/folder'", "an existing folder"),
    ("STATEYARD_FUNCTION_PROCESSES", "-1", "'-1'", "a whole number from 0 to 1000"),
    ("STATEYARD_DATABASE_CONNECTIONS", "ten", "'ten'", "a whole number from 1 to 1000"),
    ("STATEYARD_DATABASE_CONNECTIONS", "0", "'0'", "a whole number from 1 to 1000"),
    ("STATEYARD_DATABASE_CONNECTIONS", "-1", "'-1'", "a whole number"),
    ("STATEYARD_DATABASE_CONNECTIONS", "9" * 5000, "'999", "a whole number"),
    ("STATEYARD_DATABASE_CONNECTIONS", "٣", "'٣'", "a whole number"),
    ("STATEYARD_DATABASE_URL", "mysql://u:hush@x/y", "mysql://,", "postgres://user:password@"),
    ("STATEYARD_DATABASE_URL", "host=x password=hush", "something without a", "postgres://user"),
    ("STATEYARD_DATABASE_URL", "postgres://u:hush@x", "an address without the name", "postgres://"),
    (
        "STATEYARD_DATABASE_URL",
        "postgres://u:hush@x:port/y",
        "an address with an invalid port",
        "postgres://",
    ),
    ("STATEYARD_EXPRESS_EVENTS", "2", "'2'", "1 (on) or 0 (off)"),
    ("STATEYARD_FETCH_PROFILES", "orders", "'orders'", "PROJECT=PROFILE, each project once"),
    ("STATEYARD_FETCH_PROFILES", "a=x,a=y", "'a=y'", "PROJECT=PROFILE, each project once"),
    ("STATEYARD_FUNCTIONS", "[" * 100_000, "no JSON", "a JSON object"),
    ("STATEYARD_FUNCTIONS", "[]", "an array", "a JSON object"),
    (
        "STATEYARD_HOSTS",
        "a.example,https://b.example",
        "'https://b.example'",
        "host names by comma",
    ),
    ("STATEYARD_HOSTS", "yard.example.com:8083", "'yard.example.com:8083'", "without scheme and"),
    ("STATEYARD_HTTPS", "maybe", "'maybe'", "1 (on) or 0 (off)"),
    ("STATEYARD_LEASE_S", "0", "'0'", "a number of seconds"),
    ("STATEYARD_LEASE_S", "nan", "'nan'", "a number of seconds"),
    ("STATEYARD_LEASE_S", "inf", "'inf'", "a number of seconds"),
    ("STATEYARD_FEATURES", "search", "'search'", "none, or of: access_keys, "),
    ("STATEYARD_LIMITS", "2018", "'2018'", "one of: aws, 2019"),
    ("STATEYARD_LOG", "xml", "'xml'", "one of: text, json"),
    ("STATEYARD_MAIL", "mail.example.com", "something without a scheme", "smtp://user:password@"),
    ("STATEYARD_MAIL", "http://mail.example.com", "http://,", "smtp://user:password@host"),
    ("STATEYARD_MAIL", "smtp://", "an address without a host", "smtp://"),
    ("STATEYARD_MAIL", "smtp://u:hush@x:port", "a malformed address or an invalid port", "smtp://"),
    ("STATEYARD_PROCESSORS", "two", "'two'", "one of: one, all"),
    ("STATEYARD_PROXIES", "127.0.0.1, proxy.example.com", "'proxy.example.com'", "IP addresses or"),
    ("STATEYARD_TRUSTED_USER_HEADER", "Name:", "'Name:'", "the name of a header"),
    ("STATEYARD_QUOTAS", '{"open_executions": NaN}', "no JSON (NaN", "a JSON object"),
    ("STATEYARD_REGION", "Frankfurt", "'Frankfurt'", "a region, as us-east-1"),
    ("STATEYARD_RETENTION_DAYS", "soon", "'soon'", "a number of days"),
    ("STATEYARD_RETENTION_DAYS", "0", "'0'", "a number of days"),
    ("STATEYARD_RETENTION_DAYS", "-1", "'-1'", "a number of days"),
    ("STATEYARD_RETENTION_DAYS", "nan", "'nan'", "a number of days"),
    ("STATEYARD_SECRET", "guess me", "8 characters", "32 or more"),
    ("STATEYARD_INJECT_AWS_EVENTS", "all", "'all'", "1 (on) or 0 (off)"),
    ("STATEYARD_PERMISSIONS", "[]", "an array", "a JSON object"),
    ("STATEYARD_AUDIT_RETENTION_DAYS", "soon", "'soon'", "a number of days"),
    ("STATEYARD_AUDIT_RETENTION_DAYS", "0", "'0'", "a number of days"),
    ("STATEYARD_AUDIT_STREAM", "/var/log/audit", "something without a scheme", "file:///folder"),
    ("STATEYARD_AUDIT_STREAM", "file://audit", "'file://audit'", "file:///folder/name"),
    ("STATEYARD_AUDIT_STREAM", "file:///folder/", "'file:///folder/'", "file:///folder/name"),
    (
        "STATEYARD_AUDIT_STREAM",
        "http://u:hush@logs.example.com",
        "'http://...@logs",
        "https://host",
    ),
    ("STATEYARD_AUDIT_STREAM_TOKEN", "hush", "a token", "STATEYARD_AUDIT_STREAM=https://"),
    ("STATEYARD_BRANCHES", "many", "'many'", "a whole number"),
    ("STATEYARD_BRANCH_GRACE_DAYS", "-1", "'-1'", "a number of days"),
    ("STATEYARD_FUNCTION_FOLDERS", "/nowhere", "'/nowhere'", "existing folders by comma"),
    ("STATEYARD_TARGET_HOSTS", "https://x", "'https://x'", "host names by comma"),
    ("STATEYARD_REQUIRE_SECOND_FACTOR", "maybe", "'maybe'", "1 (on) or 0 (off)"),
    ("STATEYARD_OIDC", "[]", "an array", "a JSON object"),
    ("STATEYARD_PASSWORDS", "never", "'never'", "1 (on) or 0 (off)"),
    ("STATEYARD_TARGETS", "null", "null", "a JSON object"),
    ("STATEYARD_URL", "web:8083", "'web:8083'", "http://host:port or https://host"),
    ("STATEYARD_URL", "http://u:hush@web:x", "'http://...@web:x'", "http://host:port"),
    ("STATEYARD_URL", "http://u:hu/sh@web", "'http://...@web'", "http://host:port"),
    ("SFN_MOCK_CONFIG", "/nowhere/mocks.json", "'/nowhere/mocks.json'", "an existing file"),
    ("WAIT_TIME_SCALE", "fast", "'fast'", "a number of times from 0 to 1000"),
    ("WAIT_TIME_SCALE", "-1", "'-1'", "a number of times"),
    ("AWS_ACCOUNT_ID", "1234", "'1234'", "an account number of 12 digits"),
    *((name, "VALUE", "'VALUE'", "http://host:port") for name in local_options.ENDPOINTS),
    ("STATEYARD_DATA", "~nobody-of-this-name/x", "'~nobody-of-this-name/x'", "a folder"),
]


@pytest.fixture(scope="module")
def said_of_variables(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], str]:
    """Return what is said of each value above."""
    folder = str(tmp_path_factory.mktemp("data"))
    messages = read([{"STATEYARD_DATA": folder, name: value} for name, value, *_ in VARIABLES])
    return {(case[0], case[1]): message for case, message in zip(VARIABLES, messages, strict=True)}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "value", "got", "expected"), VARIABLES)
def test_a_bad_variable_is_named(
    said_of_variables: dict[tuple[str, str], str], name: str, value: str, got: str, expected: str
) -> None:
    """With what it was and what it should be; no password is in the line."""
    message = said_of_variables[name, value]
    named(message, name, got, expected)
    assert "hush" not in message


def test_every_variable_has_a_bad_value_above() -> None:
    """But those in which everything is good."""
    free = {"STATEYARD_METRICS_TOKEN"}
    assert (variables() - free) | set(local_options.VARIABLES) == {name for name, *_ in VARIABLES}


LENGTH = {
    "InvocationHttpParameters": {"HeaderParameters": [{"Key": "Content-Length", "Value": "1"}]}
}
FILES = [
    (
        "targets.json",
        '{"projects": {"web": {"machines": {"M": {"sqs": {"regon": "x"}}}}}}',
        ": projects: web: machines: M: sqs: regon",
        "an unknown name",
        "region",
    ),
    (
        "functions.json",
        '{"projects": {"web": {"add": 1}}}',
        ": projects: web: add",
        "a number",
        "a text",
    ),
    ("functions.json", '{"add": 1}', ": add", "a number", "a text"),
    ("functions.json", '{"add": "http://h:x/f?k=hush"}', ": add", "'http://h:x/f?...'", "module:"),
    ("functions.json", '{"add": "shop"}', ": add", "'shop'", "module:callable"),
    ("functions.json", '{"add": "http://u:hush@h:x"}', ": add", "'http://...@h:x'", "module:"),
    ("functions.json", "add: shop:add", ": line 1, column 1", "no JSON", "a JSON object"),
    ("functions.json", "", ": line 1, column 1", "no JSON", "a JSON object"),
    ("functions.json", "[" * 100_000, "", "no JSON", "a JSON object"),
    ("functions.json", "\ufeff{}", ": line 1, column 1", "no JSON", "a JSON object"),
    ("targets.json", "[]", "", "an array", "a JSON object"),
    ("targets.json", '{\n"s3": {},\n}', ": line 3, column 1", "no JSON", "a JSON object"),
    ("targets.json", '{"s3": "http://x"}', ": s3", "a text", "an object"),
    ("targets.json", '{"s3": {"endpoint": "x"}}', ": s3: endpoint", "an unknown", "endpoint_url"),
    ("targets.json", '{"*": {"endpoint_url": "x"}}', ": *: endpoint_url", "'x'", "http://host"),
    ("targets.json", '{"dynamdb": {}}', ": dynamdb", "an unknown name", "dynamodb"),
    (
        *("targets.json", '{"machines": {"m": {"sfn": {}}}}', ": machines: m: sfn"),
        *("an unknown name", "a service of boto3 such as"),
    ),
    ("targets.json", '{"*": {"access_key_id": 7}}', ": *: access_key_id", "a number", "a text"),
    ("targets.json", '{"http": {"endpoints": "x"}}', ": http: endpoints", "a text", "an array"),
    ("targets.json", '{"http": {"endpoints": ["x"]}}', ": http: endpoints: 0", "'x'", "http://"),
    (
        "targets.json",
        '{"http": {"connections": {"a": {"type": "BASIC", "value": "hush"}}}}',
        ": http: connections: a",
        "an object",
        "username and password",
    ),
    (
        "targets.json",
        '{"http": {"connections": {"a": {"value": "hush", "password": "hush"}}}}',
        ": http: connections: a: password",
        "an unknown name",
        "one of: type, name, value, InvocationHttpParameters",
    ),
    (
        "targets.json",
        '{"http": {"connections": {"a": {"value": "hush\\n"}}}}',
        ": http: connections: a",
        "an object",
        "a name and a value that can be sent",
    ),
    (
        "targets.json",
        json.dumps({"http": {"connections": {"a": {"value": "x", **LENGTH}}}}),
        ": http: connections: a: InvocationHttpParameters: HeaderParameters: 0",
        "an object",
        "a header that the client does not set itself",
    ),
    (
        "targets.json",
        '{"http": {"connections": {"a": {"type": "OAUTH_CLIENT_CREDENTIALS"}}}}',
        ": http: connections: a",
        "an object",
        "OAuthParameters for a connection",
    ),
    (
        "targets.json",
        '{"http": {"connections": {"a": {"name": "X-Key"}}}}',
        ": http: connections: a",
        "an object",
        "a value for a connection",
    ),
    (
        "targets.json",
        '{"machines": {"M": {"functions": {"f": "nobody"}}}}',
        ": machines: M: functions: f",
        "'",
        "module:callable",
    ),
    (
        "targets.json",
        '{"machines": {"M": {"sqs": []}}}',
        ": machines: M: sqs",
        "an array",
        "an obj",
    ),
    (
        "targets.json",
        '{"kubernetes": {"tokn": "hush"}}',
        ": kubernetes: tokn",
        "an unknown",
        "token",
    ),
    ("quotas.json", '{"open_executions": "many"}', ": open_executions", "'many'", "a whole number"),
    ("quotas.json", '{"start_execution": {"bucket": 0}}', ": start_execution", "{", "at least 1"),
    ("quotas.json", '{"starts": 1}', ": starts", "an unknown name", "start_execution"),
    ("quotas.json", '{"projects": {"p": 1}}', ": projects: p", "1", "an object of quotas"),
    (
        "quotas.json",
        '{"projects": {"p": {"activities": -1}}}',
        ": projects: p: activities",
        "-1",
        "a whole number",
    ),
    ("permissions.json", '{"deny": {"r": "sqs:*"}}', ": deny: r", "a text", "an array"),
    ("permissions.json", '{"deny": {"r": ["sqs"]}}', ": deny: r: 0", "'sqs'", "an action as sqs:"),
    ("permissions.json", '{"allow": {}}', ": allow", "an unknown name", "one of: deny"),
    ("oidc.json", '{"corp": {"client_id": "c"}}', ": corp: issuer", "an object", "Field required"),
    (
        "oidc.json",
        '{"corp": {"client_id": "c", "issuer": "http://login.example.com"}}',
        ": corp: issuer",
        "'http://login.example.com'",
        "https://host, or http:// on this machine",
    ),
    (
        "oidc.json",
        '{"corp": {"client_id": "c", "issuer": "https://x", "groups": {"dev": {"p": "admin"}}}}',
        ": corp: groups: dev: p",
        "a text",
        "'viewer', 'operator', 'editor' or 'owner'",
    ),
    (
        "oidc.json",
        '{"corp": {"client_id": "c", "issuer": "https://x", "secret": "hush"}}',
        ": corp: secret",
        "an unknown name",
        "client_secret",
    ),
    (
        "oidc.json",
        '{"Corp SSO": {"client_id": "c", "issuer": "https://x"}}',
        ": Corp SSO: [key]",
        "'Corp SSO'",
        "1 to 32 small letters",
    ),
    ("MockConfigFile.json", '{"StateMachines": []}', ": StateMachines", "an array", "an object"),
    (
        "MockConfigFile.json",
        '{"StateMachines": {"M": {"TestCases": {"T": {"S": 1}}}}}',
        ": StateMachines: M: TestCases: T: S",
        "a number",
        "a text",
    ),
    ("secret", "short", "", "5 bytes", "32 or more"),
]


@pytest.fixture(scope="module")
def said_of_files(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Path, str]]:
    """Return path and message of each file above, in their order."""
    paths = [tmp_path_factory.mktemp("data") / name for name, *_ in FILES]
    for path, (_, text, *_) in zip(paths, FILES, strict=True):
        path.write_text(text, encoding="utf-8")
    messages = read([{"STATEYARD_DATA": str(path.parent)} for path in paths])
    return list(zip(paths, messages, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize(
    "number", range(len(FILES)), ids=[f"{case[0]}-{case[2]}" for case in FILES]
)
def test_a_bad_file_is_named(said_of_files: list[tuple[Path, str]], number: int) -> None:
    """With the place in it; what may be a secret is told by its kind."""
    _, _, place, got, expected = FILES[number]
    path, message = said_of_files[number]
    named(message, f"{path}{place}", got, expected)
    assert "hush" not in message


@pytest.mark.slow
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    """A folder in its place, bytes that are no text, and a data folder that is a file."""
    path = tmp_path / "targets.json"
    path.mkdir()
    refused(check(tmp_path), str(path), "Is a directory", "a file that can be read")
    path.rmdir()
    path.write_bytes(b'{"a": "\xff"}')
    refused(check(tmp_path), str(path), "a byte at 7 that is no UTF-8", "JSON")
    file = tmp_path / "file"
    file.write_text("x", encoding="utf-8")
    refused(check(file), str(file), "File exists", "a folder that can be written")


@pytest.mark.slow
def test_the_configuration_may_stand_in_a_folder_of_its_own(tmp_path: Path) -> None:
    """It is read there and written nowhere: files, and the modules of functions."""
    config, data = tmp_path / "config", tmp_path / "data"
    config.mkdir()
    (config / "functions.json").write_text('{"charge": "shop:charge", "lost": "no:where"}')
    (config / "shop.py").write_text("def charge(event, context):\n    return event\n")
    (config / "targets.json").write_text('{"sqs": {"regon": "x"}}')
    done = run(data, "check", STATEYARD_CONFIG=str(config))
    refused(done, f"{config}/targets.json: sqs: regon", "an unknown name", "region")
    (config / "targets.json").write_text("{}")
    mocks = config / "MockConfigFile.json"
    mocks.write_text("[]")
    refused(run(data, "check", STATEYARD_CONFIG=str(config)), str(mocks), "an array", "a JSON")
    mocks.unlink()
    code = (
        "import django; django.setup()\n"
        "from django.conf import settings\n"
        "from console.functions import handlers\n"
        "print({name: handlers.find_problem(target) == ''"
        " for name, target in settings.STATEYARD_FUNCTIONS.items()})"
    )
    printed = run(data, "shell", "-v", "0", "-c", code, STATEYARD_CONFIG=str(config)).stdout
    assert printed.splitlines()[-1] == "{'charge': True, 'lost': False}"
    assert sorted(path.name for path in config.iterdir() if path.suffix) == [
        "functions.json",
        "shop.py",
        "targets.json",
    ]
