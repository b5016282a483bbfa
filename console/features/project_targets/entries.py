"""Convert a project's stored targets and functions to entries for its calls.

Entries have the form of ``targets.json`` and ``functions.json``. A setting that the operator no
longer allows, or with unreadable secrets, gives no entry; the page says why.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any

from console.config import setting_shapes
from console.config.environment import SettingError, check_object
from console.config.function_options import OWN
from console.db import sealing
from console.db.project_settings import open_setting, read_settings
from console.features.project_targets import folders, hosts
from console.integrations.targets import OF_PAGE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from console.db.project_settings import StoredSetting

UNSEALED = (
    "Its secrets cannot be decrypted, because the server has another master secret now: enter them"
    " again."
)


class TargetKind(StrEnum):
    """The kinds of settings that this feature stores."""

    SERVICE = "target"
    """An AWS service: its name -> endpoint_url and region, with a key."""
    ADDRESS = "address"
    """An origin that HTTP Tasks may call: the address itself."""
    CONNECTION = "connection"
    """What HTTP Tasks add to their requests."""
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
    """Return the missing secrets of a setting in words, "" if it has all.

    An import stores settings without secrets.
    """
    return "" if row.sealed else secrets_in_words(row.kind, row.value)


def secrets_in_words(kind: str, value: Mapping[str, Any]) -> str:
    """Return the required secrets of a setting in words."""
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
            return hosts.refusal_of_address(value["endpoint_url"])
        return hosts.refusal_of_host(f"{name}.{value.get('region', '')}.amazonaws.com")
    if kind == TargetKind.ADDRESS:
        return hosts.refusal_of_address(name)
    if kind == TargetKind.CONNECTION:
        endpoint = value.get("AuthorizationEndpoint")
        return hosts.refusal_of_address(endpoint) if endpoint else ""
    if "folder" not in value:
        return hosts.refusal_of_address(value["handler"])
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
