"""Validate and store an owner's target or function."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.conf import settings

from console.config import http_headers, setting_shapes
from console.config.environment import REGION, is_web_address
from console.db import project_settings
from console.errors import ValidationException
from console.features.project_targets import entries, folders
from console.features.project_targets.entries import TargetKind
from console.integrations import targets
from console.integrations.redaction import without_secrets

if TYPE_CHECKING:
    from collections.abc import Mapping

    from console.db.audit import Actor
    from console.db.project_settings import StoredSetting
    from console.models import Project

TYPES = {
    "API_KEY": "API key",
    "BASIC": "User and password",
    "OAUTH_CLIENT_CREDENTIALS": "OAuth client credentials",
}
"""The types of connections."""
METHODS = ("POST", "GET", "PUT")
_CONNECTION = re.compile(r"[\w.-]{1,64}")
_FUNCTION = re.compile(r"[\w.*:/+$@-]{1,170}")
_FILE_ONLY = ("activity:", "harness:")
_LONGEST_SHOWN = 80


class TargetError(ValidationException):
    """A field is invalid. ``words``: actual and allowed values."""

    def __init__(self, field: str, words: str) -> None:
        self.field, self.words = field, words
        super().__init__(f"{field.replace('_', ' ')}: {words}")


@dataclass(frozen=True, slots=True)
class NewTarget:
    """A setting from a form. ``secrets``: {} keeps the stored secrets.

    ``sent_to``: where the secrets go; after a change of it they must be entered again. ``summary``:
    describes the change in the audit.
    """

    name: str
    value: dict[str, Any]
    secrets: dict[str, str]
    sent_to: str
    summary: str


def save_target(project: Project, kind: TargetKind, sent: Mapping[str, str], actor: Actor) -> str:
    """Save a target or a function; return its name.

    Raise TargetError, and ConflictException if somebody else has changed it.
    """
    new = check_target(project, kind, sent)
    stored = project_settings.find_setting(project, kind, new.name)
    _check_secrets(new, stored, kind)
    project_settings.put_setting(
        project,
        kind,
        new.name,
        new.value,
        actor,
        revision=sent["over"] or sent["revision"],
        secrets=new.secrets or None,
        summary=new.summary,
    )
    return new.name


def check_target(project: Project, kind: TargetKind, sent: Mapping[str, str]) -> NewTarget:
    """Return a valid setting, or raise TargetError; secrets may be missing."""
    new = _READERS[kind](sent)
    refused = refusal_of_file(project.name, kind, new.name)
    if refused:
        raise TargetError("name", refused)
    secret_names = entries.secret_names(kind, new.value)
    secrets = {**dict.fromkeys(secret_names, "stored"), **new.secrets}
    mistake = entries.find_mistake(kind, new.name, new.value, secrets)
    if mistake is not None:
        raise TargetError(_field_of(kind, new, mistake.place), mistake.words)
    refused = entries.find_refusal(kind, new.name, new.value)
    if refused:
        raise TargetError(_field_of_refusal(kind, new.value), refused)
    if "folder" in new.value:
        problem = folders.definition_refusal(new.value["folder"], new.value["handler"])
        if problem:
            raise TargetError("handler", problem)
    return new


def refusal_of_file(project: str, kind: str, name: str) -> str:
    """Return why the operator's files decide a setting already, "" if they do not."""
    section, file = targets.of_file(project), "targets.json"
    keys: tuple[str, ...]
    if kind == TargetKind.FUNCTION:
        section, file, keys = targets.functions_of_file(project), "functions.json", (name,)
    elif kind == TargetKind.SERVICE:
        keys = (name, setting_shapes.ALL_SERVICES)
    else:
        keys = ("http",)
    for key in keys:
        if key in section:
            return f"The operator has set “{key}” for this project in {file}: it is read-only."
    return ""


def sends_elsewhere(new: NewTarget, stored: StoredSetting, kind: TargetKind) -> bool:
    """Whether a change would send the stored secrets to another destination."""
    value = stored.value
    if kind == TargetKind.SERVICE:
        before = str(value.get("endpoint_url", ""))
    else:
        before = f"{value['type']} {value.get('AuthorizationEndpoint', '')}"
    return before != new.sent_to


def _check_secrets(new: NewTarget, stored: StoredSetting | None, kind: TargetKind) -> None:
    """Raise TargetError unless the setting will have all its secrets."""
    names = entries.secret_names(kind, new.value)
    lacking = [name for name in names if not new.secrets.get(name)]
    if not lacking:
        return
    field = lacking[0] if lacking[0] in entries.SERVICE_SECRETS else "secret"
    words = " and ".join(entries.SECRET_WORDS[name] for name in names)
    if new.secrets or stored is None or not stored.sealed:
        raise _field_error(field, "", f"the {words}")
    if sends_elsewhere(new, stored, kind):
        again = "again: the stored one is sent to the stored address only"
        raise _field_error(field, "", f"the {words} {again}")


# -- where an error stands -------------------------------------------------------------------------

_FIELDS = {
    "AuthorizationEndpoint": "authorization_endpoint",
    "ClientID": "client_id",
    "ClientSecret": "secret",
    "HttpMethod": "method",
    "password": "secret",
    "value": "secret",
}
"""Member of an entry -> the field of its form, where it is called otherwise."""
_OWN_FIELDS = frozenset(
    ("access_key_id", "endpoint_url", "folder", "handler", "memory", "region", "scope")
) | {"secret_access_key", "timeout", "type", "username"}


def _field_of(kind: TargetKind, new: NewTarget, place: tuple[str, ...]) -> str:
    """Return the form field of an entry's member, ``name`` for the entry itself."""
    member = "" if place[-1:] in ((), (new.name,)) else place[-1]
    if member == "handler" and "folder" not in new.value:
        return "address"
    if member == "name" and kind == TargetKind.CONNECTION:
        return "header"
    return _FIELDS.get(member) or (member if member in _OWN_FIELDS else "name")


def _field_of_refusal(kind: TargetKind, value: Mapping[str, Any]) -> str:
    """Return the field with the host or folder that the operator refuses."""
    if kind == TargetKind.SERVICE:
        return "endpoint_url" if "endpoint_url" in value else "region"
    if kind == TargetKind.ADDRESS:
        return "name"
    if kind == TargetKind.CONNECTION:
        return "authorization_endpoint"
    if "folder" not in value:
        return "address"
    return "folder" if folders.folder_refusal(value["folder"]) else "handler"


# -- what was sent ---------------------------------------------------------------------------------


def _field_error(field: str, got: str, expected: str) -> TargetError:
    """Return the error of a field. ``got``: its text, shown without secrets."""
    shown = without_secrets(got)
    shown = shown if len(shown) <= _LONGEST_SHOWN else f"{shown[:_LONGEST_SHOWN]}..."
    return TargetError(field, f"got {repr(shown) if got else 'nothing'}, wanted {expected}")


def _read_service(sent: Mapping[str, str]) -> NewTarget:
    name, address, region = sent["name"], sent["endpoint_url"], sent["region"]
    if not name or name in targets.APART:
        raise _field_error("name", name, "a service such as sqs, or * for all services")
    if address and not is_web_address(address):
        raise _field_error("endpoint_url", address, "an address such as http://moto:5000")
    if region and not REGION.fullmatch(region):
        raise _field_error("region", region, "a region such as eu-west-1")
    members = {"endpoint_url": address, "region": region}
    summary = f"{address or 'AWS itself'}{f', region {region}' if region else ''}"
    return NewTarget(
        name,
        {member: text for member, text in members.items() if text},
        {key: sent[key] for key in entries.SERVICE_SECRETS if sent[key]},
        address,
        summary,
    )


def _read_address(sent: Mapping[str, str]) -> NewTarget:
    address = sent["name"].rstrip("/")
    scheme, separator, rest = address.partition("://")
    if not is_web_address(address) or not separator or set("/?#") & set(rest):
        expected = "scheme and host only, such as https://api.example.com"
        raise _field_error("name", sent["name"], expected)
    return NewTarget(f"{scheme}://{rest.lower()}", {}, {}, "", "")


def _read_connection(sent: Mapping[str, str]) -> NewTarget:
    name, kind = sent["name"], sent["type"]
    if not _CONNECTION.fullmatch(name):
        raise _field_error("name", name, "1 to 64 letters, digits and . - _")
    if kind not in TYPES:
        raise _field_error("type", kind, f"one of {', '.join(TYPES)}")
    value: dict[str, Any] = {"type": kind}
    if kind == "API_KEY":
        if sent["header"]:
            value["name"] = sent["header"]
        _check_header(sent["header"] or "Authorization", sent["secret"])
    elif kind == "BASIC":
        value["username"] = sent["username"]
        if not sent["username"]:
            raise _field_error("username", "", "the name of a user")
    else:
        value |= _read_client(sent)
    secret = entries.secret_names(TargetKind.CONNECTION, value)[0]
    secrets = {secret: sent["secret"]} if sent["secret"] else {}
    sent_to = f"{kind} {value.get('AuthorizationEndpoint', '')}"
    return NewTarget(name, value, secrets, sent_to, TYPES[kind])


def _check_header(name: str, secret: str) -> None:
    """Raise TargetError for a name or key that is no valid HTTP header."""
    if not http_headers.is_header(name, "x"):
        raise _field_error("header", name, "a name that can be sent as a header")
    if secret and not http_headers.is_header(name, secret):
        raise TargetError("secret", "The key cannot be sent as a header.")


def _read_client(sent: Mapping[str, str]) -> dict[str, str]:
    """Return the members of OAuth client credentials."""
    endpoint = sent["authorization_endpoint"]
    if not is_web_address(endpoint):
        expected = "an address such as https://login.example.com/token"
        raise _field_error("authorization_endpoint", endpoint, expected)
    if sent["method"] not in METHODS:
        raise _field_error("method", sent["method"], f"one of {', '.join(METHODS)}")
    if not sent["client_id"]:
        raise _field_error("client_id", "", "the id that the authorization server has issued")
    members = {
        "AuthorizationEndpoint": endpoint,
        "HttpMethod": sent["method"],
        "ClientID": sent["client_id"],
    }
    return members | ({"scope": sent["scope"]} if sent["scope"] else {})


def _read_function(sent: Mapping[str, str]) -> NewTarget:
    name = sent["name"]
    if name.startswith(_FILE_ONLY):
        expected = "a function: activities and harnesses are registered by the operator"
        raise _field_error("name", name, f"{expected}, in functions.json")
    if not _FUNCTION.fullmatch(name):
        raise _field_error("name", name, "the name or the ARN of a function; * stands for any text")
    if sent["type"] == "address":
        address = sent["address"]
        if not is_web_address(address):
            raise _field_error("address", address, "an address such as http://host:port/path")
        if "?" in address:
            raise _field_error("address", address, "an address without a query")
        return NewTarget(name, {"handler": address}, {}, "", address)
    if sent["type"] != "python":
        raise _field_error("type", sent["type"], "address or python")
    value = _read_callable(sent)
    return NewTarget(name, value, {}, "", sent["handler"])


def _read_callable(sent: Mapping[str, str]) -> dict[str, Any]:
    """Return the members of a Python callable."""
    folder = _read_folder(sent)
    if is_web_address(sent["handler"]) or ":" not in sent["handler"]:
        raise _field_error("handler", sent["handler"], "module:callable")
    value: dict[str, Any] = {"handler": sent["handler"], "folder": folder}
    for member, read in (("timeout", float), ("memory", int)):
        if sent[member]:
            try:
                value[member] = read(sent[member])
            except ValueError:
                raise _field_error(member, sent[member], "a number") from None
    return value


def _read_folder(sent: Mapping[str, str]) -> str:
    """Return the folder of a function: an allowed one, or one inside it."""
    roots = [str(folder) for folder in settings.STATEYARD_FUNCTION_FOLDERS]
    if not roots:
        raise TargetError("folder", folders.folder_refusal(""))
    if sent["folder"] not in roots:
        raise _field_error("folder", sent["folder"], f"one of {', '.join(roots)}")
    subfolder = Path(sent["subfolder"])
    if subfolder.is_absolute() or ".." in subfolder.parts or "\x00" in sent["subfolder"]:
        raise _field_error("subfolder", sent["subfolder"], "a folder in the selected folder")
    path = str(Path(sent["folder"]) / subfolder)
    refused = folders.folder_refusal(path)
    if refused:
        raise TargetError("subfolder" if sent["subfolder"] else "folder", refused)
    return path


_READERS = {
    TargetKind.SERVICE: _read_service,
    TargetKind.ADDRESS: _read_address,
    TargetKind.CONNECTION: _read_connection,
    TargetKind.FUNCTION: _read_function,
}
