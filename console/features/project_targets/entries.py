"""Convert a project's stored targets and functions to entries for its calls.

Entries have the form of ``targets.json`` and ``functions.json``. A setting that the operator no
longer allows, or with unreadable secrets, gives no entry; the page says why.
"""

from __future__ import annotations

import ipaddress
from enum import StrEnum
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from django.conf import settings
from django.http.request import validate_host

from console.config import setting_shapes
from console.config.environment import SettingError, check_object
from console.config.function_options import OWN
from console.db import sealing
from console.db.project_settings import open_setting, read_settings
from console.features.project_targets import folders
from console.integrations.targets import OF_PAGE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from console.db.project_settings import StoredSetting


UNSEALED = (
    "Its secrets cannot be decrypted, because the server has another master secret now: enter them"
    " again."
)
SETTING = "STATEYARD_TARGET_HOSTS"


class TargetKind(StrEnum):
    """The kinds of settings that this feature stores."""

    SERVICE = "target"
    """An AWS service: its name -> endpoint_url and region, with a key."""
    ADDRESS = "address"
    """An origin that HTTP Tasks may call: the address itself."""
    CONNECTION = "connection"
    """Credentials that HTTP Tasks add to their requests."""
    FUNCTION = "function"
    """A registered function."""


SERVICE_SECRETS = ("access_key_id", "secret_access_key")
_OF_TYPE = {
    "API_KEY": ("value",),
    "BASIC": ("password",),
    "OAUTH_CLIENT_CREDENTIALS": ("ClientSecret",),
}
"""Type of a connection -> its secrets."""
SECRET_WORDS = {
    "access_key_id": "access key ID",
    "secret_access_key": "secret access key",
    "value": "key",
    "password": "password",
    "ClientSecret": "client secret",
}
"""Secret -> its name on the page."""


def secret_names(kind: str, value: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of a setting's secrets."""
    if kind == TargetKind.SERVICE:
        return SERVICE_SECRETS
    return _OF_TYPE[value["type"]] if kind == TargetKind.CONNECTION else ()


def lacking_secrets(row: StoredSetting) -> str:
    """Return a text that lists the missing secrets of a setting, "" if it has all.

    An import stores settings without secrets.
    """
    return "" if row.sealed else secrets_in_words(row.kind, row.value)


def secrets_in_words(kind: str, value: Mapping[str, Any]) -> str:
    """Return a text that lists the required secrets of a setting."""
    return " and ".join(SECRET_WORDS[name] for name in secret_names(kind, value))


def targets_of_page(project: str) -> dict[str, Any]:
    """Return a project's targets as a section of ``targets.json``."""
    section: dict[str, Any] = {
        name: build_service(row)
        for name, row in read_settings(project, TargetKind.SERVICE).items()
        if not find_problem(row)
    }
    addresses = read_settings(project, TargetKind.ADDRESS)
    connections = read_settings(project, TargetKind.CONNECTION)
    if addresses or connections:
        section["http"] = {
            "endpoints": [name for name, row in addresses.items() if not find_problem(row)],
            "connections": {
                name: build_connection(row.value, open_setting(row))
                for name, row in connections.items()
                if not find_problem(row)
            },
        }
    return section


def functions_of_page(project: str) -> dict[str, Any]:
    """Return a project's functions as a section of ``functions.json``."""
    rows = read_settings(project, TargetKind.FUNCTION)
    return {name: build_function(row.value) for name, row in rows.items() if not find_problem(row)}


def build_service(row: StoredSetting) -> dict[str, str]:
    """Return the entry of a service; raise ``SealError``."""
    return {**row.value, **open_setting(row), OF_PAGE: "yes"}


def build_connection(value: Mapping[str, Any], secrets: Mapping[str, str]) -> dict[str, Any]:
    """Return the entry of a connection."""
    if value["type"] != "OAUTH_CLIENT_CREDENTIALS":
        return {**value, **secrets}
    client = {"ClientID": value["ClientID"], **secrets}
    oauth: dict[str, Any] = {
        "AuthorizationEndpoint": value["AuthorizationEndpoint"],
        "HttpMethod": value["HttpMethod"],
        "ClientParameters": client,
    }
    if value.get("scope"):
        scope = {"Key": "scope", "Value": value["scope"]}
        oauth["OAuthHttpParameters"] = {"BodyParameters": [scope]}
    return {"type": value["type"], "OAuthParameters": oauth}


def build_function(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entry of a function; a callable runs in its own process."""
    if "folder" not in value:
        return dict(value)
    return {**value, "process": OWN}


def find_problem(row: StoredSetting) -> str:
    """Return why a setting has no effect, "" if it has."""
    try:
        open_setting(row)
    except sealing.SealError:
        return UNSEALED
    lacking = lacking_secrets(row)
    if lacking:
        return f"Enter the {lacking}. A file of settings has no secrets."
    return find_refusal(row.kind, row.name, row.value)


def find_refusal(kind: str, name: str, value: Mapping[str, Any]) -> str:
    """Return why the operator does not allow a setting, "" if allowed."""
    if kind == TargetKind.SERVICE:
        if "endpoint_url" in value:
            return refusal_of_address(value["endpoint_url"])
        return refusal_of_host(f"{name}.{value.get('region', '')}.amazonaws.com")
    if kind == TargetKind.ADDRESS:
        return refusal_of_address(name)
    if kind == TargetKind.CONNECTION:
        endpoint = value.get("AuthorizationEndpoint")
        return refusal_of_address(endpoint) if endpoint else ""
    if "folder" not in value:
        return refusal_of_address(value["handler"])
    return folders.handler_refusal(value["folder"], value["handler"])


def find_mistake(
    kind: str, name: str, value: Mapping[str, Any], secrets: Mapping[str, str]
) -> SettingError | None:
    """Return the error in an entry by the files' shapes, None if valid."""
    section: dict[str, Any]
    shape = setting_shapes.TARGETS
    if kind == TargetKind.SERVICE:
        section = {name: {**value, **secrets}}
    elif kind == TargetKind.ADDRESS:
        section = {"http": {"endpoints": [name]}}
    elif kind == TargetKind.CONNECTION:
        section = {"http": {"connections": {name: build_connection(value, secrets)}}}
    else:
        section, shape = {name: build_function(value)}, setting_shapes.FUNCTIONS
    try:
        check_object(section, "The entry", shape)
    except SettingError as error:
        return error
    return None


# -- host names ------------------------------------------------------------------------------------

# ``outbound`` checks the resolved addresses at each call. An entry for loopback allows loopback,
# because the operator wrote it. An owner's loopback needs the operator's permission, unless only
# users of this machine can reach the server.


def refusal_of_address(url: str) -> str:
    """Return why an owner may not use a target's URL, "" if allowed."""
    parts = urlsplit(url)
    if "@" in parts.netloc:
        return "An address of a target has no user and no password: enter them as credentials."
    return refusal_of_host(parts.hostname or "")


def refusal_of_host(host: str) -> str:
    """Return why an owner may not use a host, "" if allowed."""
    allowed = settings.STATEYARD_TARGET_HOSTS
    name = host.rstrip(".").lower()
    if _is_loopback(name):
        if name in allowed or _serves_this_machine_only():
            return ""
        return (
            f"{host} is the machine of the server itself: a target there has to be allowed by the"
            f" operator, in {SETTING}."
        )
    if validate_host(name, allowed):
        return ""
    return (
        f"{host} is not allowed as a target: the operator allows {', '.join(allowed)} ({SETTING})."
    )


def _serves_this_machine_only() -> bool:
    return not settings.STATEYARD_HOSTS and not settings.STATEYARD_HTTPS


def _is_loopback(host: str) -> bool:
    """Return whether a host is a loopback address; ``outbound`` refuses other names for it."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
