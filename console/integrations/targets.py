"""Where does a call to an AWS service or a function go?  Only where the operator has said.

``DATA/targets.json`` (or ``STEPYARD_TARGETS``): service -> ``{"endpoint_url", "region", "profile",
"access_key_id", "secret_access_key"}``, ``"*"`` for all others. Without an entry nothing is called:
a test must not reach somebody's real account by accident. Functions (``functions.json``) have a
name, or a pattern of names or ARNs with ``*``. ``"machines": {<state machine>: {...}}`` holds the
same once more, with ``"functions"``: what stands there comes first for that state machine.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import botocore.session
from botocore.config import Config
from django.conf import settings

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from console.integrations.outcome import Home

_CONFIG = Config(
    retries={"max_attempts": 0},
    connect_timeout=10,
    read_timeout=60,
    max_pool_connections=64,
    parameter_validation=True,
    inject_host_prefix=False,
    s3={"addressing_style": "path"},
)
_MACHINE_AT = 6  # arn:aws:states:region:account:execution:MACHINE[/label]:name
OWN = "stepfunctions"
MACHINES, FUNCTIONS, KUBERNETES = "machines", "functions", "kubernetes"
APART = (MACHINES, FUNCTIONS, KUBERNETES, "http")
"""Keys of the file that are no service of botocore's."""
_making = threading.Lock()


class NoTargetError(Exception):
    """Nobody has said where calls to a service go."""


@dataclass(frozen=True, slots=True)
class Found:
    """An entry: what it says, and where it stands in the files."""

    target: Mapping[str, Any]
    where: str


def machine_of(execution_arn: str) -> str:
    """Return the name of the state machine of an execution, "" for none."""
    parts = execution_arn.split(":")
    return parts[_MACHINE_AT].partition("/")[0] if len(parts) > _MACHINE_AT else ""


def find(service: str, machine: str) -> Found | None:
    """Return the entry for a service (botocore's name of it), None if there is none."""
    for place, said in _places(machine):
        for key in (service, "*"):
            if isinstance(said.get(key), dict):
                return Found(said[key], f"{place}{key}")
    return None


def exact(service: str, machine: str) -> Found | None:
    """Return the entry that names a service, or what else the file has under a name."""
    for place, said in _places(machine):
        if isinstance(said.get(service), dict):
            return Found(said[service], f"{place}{service}")
    return None


def function(name: str, arn: str, machine: str) -> tuple[str, str] | None:
    """Return what is registered for a function - a URL or ``module:callable`` - and where."""
    own = _own(machine).get(FUNCTIONS)
    places = [("functions: ", settings.STEPYARD_FUNCTIONS)]
    if isinstance(own, dict):
        places.insert(0, (f"machines: {machine}: functions: ", own))
    for place, said in places:
        if name in said:
            return said[name], f"{place}{name}"
        for pattern, target in said.items():
            if "*" in pattern and (fnmatchcase(name, pattern) or fnmatchcase(arn, pattern)):
                return target, f"{place}{pattern}"
    return None


def _places(machine: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the sections to look in: the state machine's own first."""
    yield f"machines: {machine}: ", _own(machine)
    yield "", settings.STEPYARD_TARGETS


def _own(machine: str) -> Mapping[str, Any]:
    found = settings.STEPYARD_TARGETS.get(MACHINES, {}).get(machine, {}) if machine else {}
    return found if isinstance(found, dict) else {}


def is_here(service: str, machine: str) -> bool:
    """Tell whether botocore's service is this server: Step Functions, unless named otherwise."""
    return service == OWN and exact(service, machine) is None


def client(service: str, home: Home | None, region: str, machine: str = "") -> Any:
    """Return the client for botocore's service; raise ``NoTargetError``.

    Step Functions are here (``home``, in the ``region`` of the execution) unless named otherwise.
    """
    found = find(service, machine)
    target = None if found is None else dict(found.target)
    if home is not None and is_here(service, machine):
        return home.client(region or settings.STEPYARD_REGION)
    if target is None:
        raise NoTargetError(
            f"No target is configured for the service '{service}': name its endpoint in "
            'targets.json in the data folder, or one for all services under "*"'
        )
    with _making:  # making clients is not safe in threads, using them is
        return _client(service, tuple(sorted(target.items())))


@lru_cache(maxsize=256)
def _client(service: str, target: tuple[tuple[str, str], ...]) -> Any:
    given = dict(target)
    session = botocore.session.Session(profile=given.get("profile"))
    return session.create_client(
        service,
        region_name=given.get("region", settings.STEPYARD_REGION),
        endpoint_url=given.get("endpoint_url"),
        aws_access_key_id=given.get("access_key_id"),
        aws_secret_access_key=given.get("secret_access_key"),
        config=_CONFIG,
    )
