"""Find the configured target (endpoint, credentials) of a call to an AWS service or function.

``DATA/targets.json`` (or ``STATEYARD_TARGETS``): service -> ``{"endpoint_url", "region", "profile",
"access_key_id", "secret_access_key"}``, ``"*"`` for all others. Without an entry nothing is called:
a test must not reach a real account by accident. Functions (``functions.json``) have a name, or a
pattern of names or ARNs with ``*``.

``"projects": {<project>: {...}}`` in either file holds a section for one project only.
``"machines": {<state machine>: {...}}`` in a project's section of ``targets.json`` holds one for a
state machine, with ``"functions"``. A ``"machines"`` beside the general entries counts for the
project ``default`` only, because each project may have a state machine of that name. Precedence:
the state machine's section, the project's, the general entry. Entries are not merged: a project
with its own ``"http"`` has none of the general addresses and connections. A branch has the entries
of its parent.

Owners may set targets and functions of their project on pages (``Hook.PROJECT_TARGETS``,
``Hook.PROJECT_FUNCTIONS``). These come after the project's section in the files, so that the
operator's entry for a project wins, and before the general entries.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import botocore.session
from botocore import awsrequest
from botocore.config import Config
from django.conf import settings
from urllib3.exceptions import NewConnectionError

from console.config.function_options import (
    SHARED_PROCESS,
    FoundFunction,
    general_options,
    is_function,
    read_entry,
)
from console.config.functions_file import FunctionsFile
from console.db.branch_names import parent_name
from console.feature import Hook, hooked
from console.integrations import outbound

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator, Mapping

    from console.integrations.home import Home


_CONFIG = Config(
    retries={"max_attempts": 0},
    connect_timeout=10,
    read_timeout=60,
    max_pool_connections=64,
    parameter_validation=True,
    inject_host_prefix=False,
    s3={"addressing_style": "path"},
)
_SLOW_S = {"bedrock-agentcore": 900}
"""botocore's service -> its normal response time in seconds, for slow services (agents)."""
_MACHINE_AT = 6  # arn:aws:states:region:account:execution:MACHINE[/label]:name
OWN = "stepfunctions"
OWN_SERVICES = frozenset({OWN, "events", "scheduler", "cloudwatch", "logs"})
"""Services of botocore's that this server has, in part: calls of Tasks stay here."""
MACHINES, FUNCTIONS, KUBERNETES = "machines", "functions", "kubernetes"
PROJECTS = "projects"
APART = (MACHINES, FUNCTIONS, KUBERNETES, PROJECTS, "http")
"""Keys of the file that are not services of botocore."""
PAGE = "project settings: "
"""Prefix of the place, in messages, of an entry that an owner has set on a page."""
OF_PAGE = "of_page"
"""A member that marks such an entry: calls to it are restricted."""
DEFAULT = "default"
"""The project to which ``"machines"`` outside of a project's section applies."""
_making = threading.Lock()


class NoTargetError(Exception):
    """No entry configures the target of a service."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A settings entry with its place in the files."""

    target: Mapping[str, Any]
    where: str


@dataclass(frozen=True, slots=True)
class MachineKey:
    """Key of a state machine in the settings: its project and name; "" if unknown."""

    project: str = ""
    name: str = ""


NOBODY = MachineKey()
"""The name of no project: only the general entries apply to it."""


def machine_of(execution_arn: str) -> str:
    """Return the name of an execution's state machine, "" without one."""
    parts = execution_arn.split(":")
    return parts[_MACHINE_AT].partition("/")[0] if len(parts) > _MACHINE_AT else ""


def find_entry(service: str, machine: MachineKey) -> Entry | None:
    """Return the entry for a service (botocore's name), None if there is none."""
    for place, section in _places(machine):
        for key in (service, "*"):
            if isinstance(section.get(key), dict):
                return Entry(section[key], f"{place}{key}")
    return None


def find_exact_entry(service: str, machine: MachineKey) -> Entry | None:
    """Return the entry under exactly this name in ``targets.json``, ignoring ``"*"``."""
    for place, section in _places(machine):
        if isinstance(section.get(service), dict):
            return Entry(section[service], f"{place}{service}")
    return None


def find_function(name: str, arn: str, machine: MachineKey) -> FoundFunction | None:
    """Return the target registered for a function: a URL or ``module:callable``."""
    for place, section in _functions(machine):
        if is_function(name, section.get(name)):
            return _read(section, name, place)
        for pattern, target in section.items():
            is_pattern = "*" in pattern and is_function(pattern, target)
            if is_pattern and (fnmatchcase(name, pattern) or fnmatchcase(arn, pattern)):
                return _read(section, pattern, place)
    return None


def find_registered_function(
    name: str, arn: str, machine: MachineKey, *, sample: bool
) -> FoundFunction | None:
    """Return the function registered for a name, and its place in the settings.

    Precedence: the operator's entry, then a target for ``lambda`` (return None: the function is
    called there), then, for a ``sample`` machine only, the sample's own function. A target ``"*"``
    for all services does not replace the samples' functions.
    """
    registration = find_function(name, arn, machine)
    if registration is None and sample and find_exact_entry("lambda", machine) is None:
        return _sample_function(name)
    return registration


def find_activity(name: str, project: str, *, sample: bool = False) -> FoundFunction | None:
    """Return the callable that works an activity in this server, and its place."""
    key = f"activity:{name}"
    for place, section in functions_of(project):
        if is_function(key, section.get(key)):
            return _read(section, key, place)
    return _sample_function(key) if sample else None


def _sample_function(name: str) -> FoundFunction | None:
    """Return a function of the bundled samples, which may share the server's process."""
    target = settings.STATEYARD_SAMPLE_FUNCTIONS.get(name)
    return None if target is None else FoundFunction(target, f"samples: {name}", SHARED_PROCESS)


def find_harness(name: str, machine: MachineKey) -> FoundFunction | None:
    """Return the function for a Bedrock AgentCore harness, and its place."""
    key = f"harness:{name}"
    for place, section in _functions(machine):
        if name and is_function(key, section.get(key)):
            return _read(section, key, place)
    return None


def _read(section: Mapping[str, Any], name: str, place: str) -> FoundFunction:
    """Return a function of a section, with the defaults of its section or file."""
    return read_function(section[name], f"{place}{name}", section)


def read_function(
    entry: str | Mapping[str, Any], where: str, section: Mapping[str, Any]
) -> FoundFunction:
    """Return a function from its entry in a section of either file."""
    general = general_options(_all_functions()) | general_options(section)
    return read_entry(entry, where, general, settings.STATEYARD_CONFIG or settings.DATA_DIR)


def functions_of(project: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the sections of ``functions.json`` for a project, its own first.

    The order is: the project's entry in the file, functions that its owners registered on pages,
    the general entry.
    """
    functions = _all_functions()
    project = parent_name(project)
    yield f"functions: projects: {project}: ", _project_section(functions, project)
    yield PAGE, _of_page(Hook.PROJECT_FUNCTIONS, project)
    yield "functions: ", functions


def _all_functions() -> Mapping[str, Any]:
    """Return the present ``functions.json``, without further checks of the file."""
    functions = settings.STATEYARD_FUNCTIONS
    return functions.entries() if isinstance(functions, FunctionsFile) else functions


def list_registrations() -> Iterator[FoundFunction]:
    """Yield each registered function, in either file and for any project."""
    functions, general = _all_functions(), settings.STATEYARD_TARGETS
    yield from _registrations("functions: ", functions)
    for project, section in _section(functions, PROJECTS).items():
        yield from _registrations(f"functions: {PROJECTS}: {project}: ", section)
    owners = [("", general)]
    owners += [(f"{PROJECTS}: {name}: ", own) for name, own in _section(general, PROJECTS).items()]
    for place, owner in owners:
        for name, section in _section(owner, MACHINES).items():
            where = f"{place}{MACHINES}: {name}: {FUNCTIONS}: "
            yield from _registrations(where, _section(section, FUNCTIONS))


def _registrations(place: str, section: Mapping[str, Any]) -> Iterator[FoundFunction]:
    for name, target in section.items():
        if is_function(name, target):
            yield _read(section, name, place)


def sections_of(project: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield a project's sections of ``targets.json``: for all state machines (""), then each."""
    project = parent_name(project)
    own = _project_section(settings.STATEYARD_TARGETS, project)
    general = settings.STATEYARD_TARGETS
    yield "", _over(own, _over(_of_page(Hook.PROJECT_TARGETS, project), general))
    machines = _section(general, MACHINES) if project == DEFAULT else {}
    for name in sorted({*_section(own, MACHINES), *machines}):
        yield name, _over(_section(_section(own, MACHINES), name), _section(machines, name))


def _over(nearer: Mapping[str, Any], farther: Mapping[str, Any]) -> Mapping[str, Any]:
    """Merge two sections: a nearer ``"*"`` precedes every service of the farther one."""
    hidden = "*" in nearer
    rest = {name: value for name, value in farther.items() if not hidden or name in APART}
    section = {**rest, **nearer}
    if FUNCTIONS in section:  # entry by entry, as ``function`` looks for them
        section[FUNCTIONS] = functions_over(
            _section(nearer, FUNCTIONS), _section(farther, FUNCTIONS)
        )
    return section


def functions_over(nearer: Mapping[str, Any], farther: Mapping[str, Any]) -> Mapping[str, Any]:
    """Merge functions of two sections: a nearer pattern precedes farther names.

    Activities and harnesses have no patterns.
    """
    patterns = [
        name for name, target in nearer.items() if "*" in name and is_function(name, target)
    ]
    rest = {
        name: target
        for name, target in farther.items()
        if name.startswith(("activity:", "harness:"))
        or not any(fnmatchcase(name, each) for each in patterns)
    }
    return {**rest, **nearer}


def _functions(machine: MachineKey) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for place, said in _of_machine(machine):
        yield f"{place}{FUNCTIONS}: ", _section(said, FUNCTIONS)
    yield from functions_of(machine.project)


def _places(machine: MachineKey) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the sections to search, the state machine's own first."""
    yield from _of_machine(machine)
    project = parent_name(machine.project)
    yield f"{PROJECTS}: {project}: ", _project_section(settings.STATEYARD_TARGETS, project)
    yield PAGE, _of_page(Hook.PROJECT_TARGETS, project)
    yield "", settings.STATEYARD_TARGETS


def _of_machine(machine: MachineKey) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if not machine.name:
        return
    project = parent_name(machine.project)
    own = _project_section(settings.STATEYARD_TARGETS, project)
    place = f"{MACHINES}: {machine.name}: "
    yield f"{PROJECTS}: {project}: {place}", _section(_section(own, MACHINES), machine.name)
    if project == DEFAULT:
        yield place, _section(_section(settings.STATEYARD_TARGETS, MACHINES), machine.name)


def _project_section(document: Mapping[str, Any], project: str) -> Mapping[str, Any]:
    """Return the section of a project in a file."""
    return _section(_section(document, PROJECTS), project) if project else {}


def of_file(project: str) -> Mapping[str, Any]:
    """Return a project's section in ``targets.json``, which only the operator can change."""
    return _project_section(settings.STATEYARD_TARGETS, project)


def functions_of_file(project: str) -> Mapping[str, Any]:
    """Return a project's section in ``functions.json``, which only the operator can change."""
    return _project_section(_all_functions(), project)


def _of_page(hook: Hook, project: str) -> Mapping[str, Any]:
    """Return the settings that a project's owners saved on pages; empty without the feature."""
    sections = [section(project) for section in hooked(hook)] if project else []
    return sections[0] if sections else {}


def _section(document: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    section = document.get(name)
    return section if isinstance(section, dict) else {}


def is_here(service: str, machine: MachineKey) -> bool:
    """Whether this server answers a Task's calls of a botocore service itself.

    A target for that very service sends them elsewhere; ``"*"`` does not.
    """
    return service in OWN_SERVICES and find_exact_entry(service, machine) is None


def service_client(
    service: str,
    home: Home | None,
    region: str,
    machine: MachineKey = NOBODY,
    *,
    validating: bool = True,
) -> Any:
    """Return the client for botocore's service; raise ``NoTargetError``.

    This server's own services are ``home``, in the ``region`` of the execution, unless named
    otherwise.
    ``validating``: refuse parameters before they are sent.
    """
    entry = find_entry(service, machine)
    target = None if entry is None else dict(entry.target)
    if home is not None and is_here(service, machine):
        return home.client(service, region or settings.STATEYARD_REGION)
    if target is None:
        raise NoTargetError(
            f"No target is configured for the service '{service}': name its endpoint in "
            'targets.json in the data folder, or one for all services under "*"'
        )
    return make_client(service, target, validating=validating)


def make_client(
    service: str, target: Mapping[str, str], *, validating: bool = True, limit_s: float = 0
) -> Any:
    """Return the client for an entry; an owner's connects to allowed addresses only.

    ``limit_s``: the limits for connecting and for reading, in seconds; 0 for the defaults.
    """
    with _making:  # making clients is not safe in threads, using them is
        fields = tuple(sorted(target.items()))
        return _client(service, fields, validating=validating, limit_s=limit_s)


@lru_cache(maxsize=256)
def _client(
    service: str, target: tuple[tuple[str, str], ...], *, validating: bool, limit_s: float = 0
) -> Any:
    fields = dict(target)
    guarded = OF_PAGE in fields
    session = botocore.session.Session(profile=fields.get("profile"))
    client = session.create_client(
        service,
        region_name=fields.get("region", settings.STATEYARD_REGION),
        endpoint_url=fields.get("endpoint_url"),
        aws_access_key_id=fields.get("access_key_id"),
        aws_secret_access_key=fields.get("secret_access_key"),
        config=_config(service, guarded=guarded, validating=validating, limit_s=limit_s),
    )
    if guarded:
        guard_client(client)
    return client


def _config(service: str, *, guarded: bool, validating: bool, limit_s: float) -> Config:
    changes = Config(parameter_validation=validating)
    if limit_s:
        changes = changes.merge(Config(connect_timeout=limit_s, read_timeout=limit_s))
    if guarded:
        changes = changes.merge(Config(proxies={}))
    if service in _SLOW_S and not limit_s:
        changes = changes.merge(Config(read_timeout=_SLOW_S[service]))
    return _CONFIG.merge(changes)


# -- guarded clients -------------------------------------------------------------------------------

# The operator's targets are trusted. A target set by an owner on a page may name any host: its name
# is resolved once, each address is checked, and the connection goes to a checked address. Proxies
# of the environment are ignored, because they would resolve the name themselves.


class _Guarded:
    """Mixin for urllib3 connections that connects to a checked address."""

    def _new_conn(self: Any) -> socket.socket:
        host = self.host
        try:
            addresses = outbound.find_addresses(host, self.port)
        except outbound.ConnectError as error:
            raise NewConnectionError(self, str(error)) from None
        problem: NewConnectionError = NewConnectionError(self, f"{host} has no address")
        for address in addresses:
            self._dns_host = address  # urllib3's own: the name that is connected to, not the Host
            try:
                connected: socket.socket = super()._new_conn()  # type: ignore[misc]
            except NewConnectionError as error:
                problem = error
            else:
                return connected
            finally:
                self._dns_host = host
        raise problem


def _guarded_pool(pool: type[Any], connection: type[Any]) -> type[Any]:
    """Return a subclass of the connection pool ``pool`` with guarded connections."""
    guarded = type(f"Guarded{connection.__name__}", (_Guarded, connection), {})
    return type(f"Guarded{pool.__name__}", (pool,), {"ConnectionCls": guarded})


_POOLS = {
    "http": _guarded_pool(awsrequest.AWSHTTPConnectionPool, awsrequest.AWSHTTPConnection),
    "https": _guarded_pool(awsrequest.AWSHTTPSConnectionPool, awsrequest.AWSHTTPSConnection),
}


def guard_client(client: Any) -> None:
    """Guard a client that has sent no request yet."""
    session = client._endpoint.http_session  # noqa: SLF001 - botocore has no other way to it
    session._manager.pool_classes_by_scheme = _POOLS  # noqa: SLF001
