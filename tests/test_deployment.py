"""The image and the compose file.

What they start, and the secrets that they refuse to start without.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.core.management import CommandError, get_commands, load_command_class

from console.config import environment, local_options

ROOT = Path(__file__).parent.parent
COMPOSE = (ROOT / "compose.yaml").read_text(encoding="utf-8")
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
SERVICES: dict[str, dict[str, Any]] = yaml.safe_load(COMPOSE)["services"]
OURS = [name for name, service in SERVICES.items() if service.get("image") == "stateyard"]


def started(command: list[str]) -> None:
    """Check that a command line of ours names a command and options that are there."""
    assert command[:2] == ["python", "manage.py"]
    app = get_commands()[command[2]]
    assert app == "console"
    load_command_class(app, command[2]).create_parser("manage.py", command[2]).parse_args(
        command[3:]
    )


def test_what_the_containers_run_is_there() -> None:
    """Web, worker and the image's own command are commands of ours, with options they take."""
    assert set(OURS) == {"web", "worker"}
    for name in OURS:
        started(SERVICES[name]["command"])
    (own,) = re.findall(r"^CMD (\[.*\])$", DOCKERFILE, re.MULTILINE)
    started(yaml.safe_load(own))
    assert SERVICES["worker"]["deploy"]["replicas"] == 2


def test_what_ends_is_started_again_and_its_health_can_be_asked() -> None:
    """A process that stands still ends itself; Docker starts it again, and shows its health."""
    for name in OURS:
        assert SERVICES[name]["restart"] == "unless-stopped"
        assert SERVICES[name]["healthcheck"]["test"][0] == "CMD"
    started(SERVICES["worker"]["healthcheck"]["test"][1:])


def test_a_command_that_is_not_there_would_be_seen() -> None:
    """The check above can fail."""
    with pytest.raises(KeyError):
        started(["python", "manage.py", "webb"])
    with pytest.raises(CommandError):
        started(["python", "manage.py", "web", "--prot", "8083"])


def test_no_secret_has_a_default() -> None:
    """Compose refuses to start without them; every other variable has a harmless default."""
    required = set(re.findall(r"\$\{(\w+):\?", COMPOSE))
    assert required == {"STATEYARD_SECRET", "POSTGRES_PASSWORD"}
    for name in required:
        uses = re.findall(rf"\$\{{{name}(.)", COMPOSE)
        assert uses
        assert set(uses) == {":"}
    defaults = dict(re.findall(r"\$\{(\w+):-([^}]*)\}", COMPOSE))
    assert defaults == {
        "STATEYARD_HOSTS": "",
        "STATEYARD_HTTPS": "1",
        "PUBLISH": "127.0.0.1:8083",
        "CONFIG": "./config",
        "MEMORY": "2g",
        "PARQUET": "0",
        "REVISION": "",
        "POSTGRES_IMAGE": "postgres:17",
        "PYTHON_IMAGE": "python:3.12-slim",
    }
    assert not re.findall(r"(?:ARG|ENV) .*(?:SECRET|PASSWORD|KEY)", DOCKERFILE)


def test_all_processes_share_one_configuration() -> None:
    """Another secret or database in one of them would be another server."""
    assert SERVICES["web"]["environment"] == SERVICES["worker"]["environment"]
    environment = SERVICES["web"]["environment"]
    assert environment["STATEYARD_DATABASE_URL"].startswith(
        "postgres://stateyard:${POSTGRES_PASSWORD"
    )
    assert environment["STATEYARD_DATABASE_URL"].endswith("@postgres:5432/stateyard")
    # the workers' own calls go to a name that the server answers to
    assert environment["STATEYARD_URL"] == "http://web:8083"
    assert environment["STATEYARD_HOSTS"].split(",")[0] == "web"


def test_every_variable_reaches_the_containers() -> None:
    """A variable that only Compose does not know would be set in .env and count for nothing."""
    passed = set(SERVICES["web"]["environment"])
    documented = (ROOT / "docs/reference/settings.md").read_text(encoding="utf-8")
    read = {name for name in environment.known_variables if f"`{name}`" in documented}
    names = {*read, *local_options.VARIABLES}  # other tests read variables of their own
    own = {name for name in names if name.startswith("STATEYARD_")}
    assert {"STATEYARD_QUOTAS", "STATEYARD_CONFIG", "STATEYARD_URL"} <= own
    assert names - passed == {"STATEYARD_DATA"}  # the image's own
    assert passed <= names


def test_the_containers_write_their_data_only() -> None:
    """The root is read-only, the configuration is mounted and read-only, memory has a limit."""
    image = dict(re.findall(r"(STATEYARD_\w+)=(\S+)", DOCKERFILE))
    assert re.findall(r"^VOLUME (\S+)$", DOCKERFILE, re.MULTILINE) == [image["STATEYARD_DATA"]]
    for name in OURS:
        service = SERVICES[name]
        assert service["read_only"] is True
        assert service["mem_limit"]
        assert service["pids_limit"]
        assert len(service["tmpfs"]) == 1
        (mounted,) = service["volumes"]
        assert mounted.endswith(f":{service['environment']['STATEYARD_CONFIG']}:ro")


def test_the_database_outlives_its_container() -> None:
    """The database has a volume, and a health check that the others wait for."""
    database = SERVICES["postgres"]
    assert database["volumes"] == ["database:/var/lib/postgresql/data"]
    assert "database" in yaml.safe_load(COMPOSE)["volumes"]
    assert database["healthcheck"]["test"][1] == "pg_isready"
    for name in OURS:
        assert SERVICES[name]["depends_on"]["postgres"]["condition"] == "service_healthy"
    assert "ports" not in database


def test_moto_is_started_only_on_request() -> None:
    """AWS's stand-in is a profile."""
    assert SERVICES["moto"]["profiles"] == ["aws"]
    assert not [
        name for name, service in SERVICES.items() if "profiles" in service and name != "moto"
    ]


def test_the_image_runs_as_nobody_special() -> None:
    """A numbered user owns nothing but the data folder; the last word on the user is not root."""
    users = re.findall(r"^USER (\S+)$", DOCKERFILE, re.MULTILINE)
    assert users == ["10001"]
    for name in OURS:
        assert SERVICES[name]["cap_drop"] == ["ALL"]
        assert "user" not in SERVICES[name]


def test_only_sources_go_into_the_image() -> None:
    """What the image copies exists and is not ignored; history, tests and data are ignored."""
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    rules = [line for line in lines if line and not line.startswith("#")]
    assert rules[0] == "*"
    allowed = {line.removeprefix("!") for line in rules if line.startswith("!")}
    copied = set()
    for sources in re.findall(r"^COPY (.+) \S+$", DOCKERFILE, re.MULTILINE):
        copied |= set(sources.split())
    assert copied == allowed
    assert all((ROOT / source).exists() for source in copied)


def test_checks_of_a_deployment_miss_nothing_in_the_containers() -> None:
    """Compose sets every variable that ``check --deploy`` asks for."""
    environment = SERVICES["web"]["environment"]
    names = ("DATABASE_URL", "HTTPS", "SECRET", "URL")
    assert not [name for name in names if not environment[f"STATEYARD_{name}"]]
