"""Fields of the target forms: labels, hints and values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.conf import settings

from console.features.project_targets import store
from console.features.project_targets.entries import TargetKind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from console.features.project_targets.store import TargetError

PYTHON, ADDRESS = "python", "address"
"""The types of functions."""


@dataclass(frozen=True, slots=True)
class TargetField:
    """A field of a form. ``choices``: a select's options; ``secret``: its value is never shown.

    ``problem``: why it was refused.
    """

    name: str
    label: str
    hint: str = ""
    value: str = ""
    required: bool = False
    secret: bool = False
    choices: tuple[str, ...] = ()
    problem: str = ""

    @property
    def described_by(self) -> str:
        """Return the element ids of its hint and error."""
        ids = ("hint", bool(self.hint)), ("problem", bool(self.problem))
        return " ".join(f"{word}-{self.name}" for word, is_there in ids if is_there)


@dataclass(frozen=True, slots=True)
class TargetType:
    """A type of connection or function, selected by a link."""

    value: str
    label: str


def types_of(kind: str) -> list[TargetType]:
    """Return the types of a kind."""
    if kind == TargetKind.CONNECTION:
        return [TargetType(value, label) for value, label in store.TYPES.items()]
    if kind == TargetKind.FUNCTION:
        return [TargetType(ADDRESS, "Address"), TargetType(PYTHON, "Python callable")]
    return []


def fields_of(
    kind: TargetKind, sent: Mapping[str, Any], error: TargetError | None = None, *, is_new: bool
) -> list[TargetField]:
    """Return the fields of a form. ``sent``: their values; ``error``: of one of them."""
    name = [_name_field(kind, sent)] if is_new else []
    fields = [*name, *_FIELDS[kind](sent, is_new)]
    if error is None:
        return fields
    return [
        replace(field, problem=_with_label(field.label, error.words))
        if field.name == error.field
        else field
        for field in fields
    ]


def _with_label(label: str, words: str) -> str:
    """Return an error message, with the field's label if it is missing in it."""
    return f"{label}: {words}." if words.startswith("got ") else words


def sent_of(kind: str, value: Mapping[str, Any]) -> dict[str, Any]:
    """Return a setting as form values, without name and secrets."""
    if kind == TargetKind.CONNECTION:
        return {
            "type": value["type"],
            "header": value.get("name", ""),
            "username": value.get("username", ""),
            "authorization_endpoint": value.get("AuthorizationEndpoint", ""),
            "method": value.get("HttpMethod", store.METHODS[0]),
            "client_id": value.get("ClientID", ""),
            "scope": value.get("scope", ""),
        }
    if kind == TargetKind.FUNCTION and "folder" in value:
        folder, roots = Path(value["folder"]), settings.STATEYARD_FUNCTION_FOLDERS
        root = next((root for root in roots if folder.is_relative_to(root)), None)
        subfolder = str(folder.relative_to(root)) if root else ""
        return {
            **value,
            "type": PYTHON,
            "folder": str(root or ""),
            "subfolder": "" if subfolder == "." else subfolder,
        }
    if kind == TargetKind.FUNCTION:
        return {"type": ADDRESS, "address": value["handler"]}
    return dict(value)


def _name_field(kind: TargetKind, sent: Mapping[str, Any]) -> TargetField:
    label, hint = _NAMES[kind]
    return TargetField("name", label, hint, sent.get("name", ""), required=True)


_NAMES = {
    TargetKind.SERVICE: (
        "Service",
        "As boto3 names it: sqs, dynamodb, events. * stands for all services without an entry.",
    ),
    TargetKind.ADDRESS: (
        "Address",
        "Scheme and host that HTTP tasks may call, as https://api.example.com.",
    ),
    TargetKind.CONNECTION: ("Name", "The name in the ARN of the connection."),
    TargetKind.FUNCTION: (
        "Name",
        "The name of the Lambda function. * stands for any text: billing-*.",
    ),
}


def _service_fields(sent: Mapping[str, Any], is_new: bool) -> list[TargetField]:
    hint = "Stored, and never shown. Leave both empty to keep the stored key."
    if is_new:
        hint = "Stored encrypted, and never shown again. Most emulators accept any text."
    return [
        TargetField(
            "endpoint_url",
            "Endpoint",
            "The address of an emulator, as http://moto:5000. Leave it empty for AWS itself.",
            sent.get("endpoint_url", ""),
        ),
        TargetField(
            "region",
            "Region",
            "Leave it empty for the region of the server.",
            sent.get("region", ""),
        ),
        TargetField("access_key_id", "Access key ID", hint, required=is_new, secret=True),
        TargetField("secret_access_key", "Secret access key", required=is_new, secret=True),
    ]


def _connection_fields(sent: Mapping[str, Any], is_new: bool) -> list[TargetField]:
    hint = "Stored, and never shown. Leave it empty to keep it."
    if is_new:
        hint = "Stored encrypted, and never shown again."
    kind = sent.get("type", "")
    if kind == "BASIC":
        return [
            TargetField("username", "User", value=sent.get("username", ""), required=True),
            TargetField("secret", "Password", hint, required=is_new, secret=True),
        ]
    if kind == "OAUTH_CLIENT_CREDENTIALS":
        return [
            TargetField(
                "authorization_endpoint",
                "Authorization endpoint",
                "The address that issues tokens, as https://login.example.com/token.",
                sent.get("authorization_endpoint", ""),
                required=True,
            ),
            TargetField("method", "Method", value=sent.get("method", ""), choices=store.METHODS),
            TargetField("client_id", "Client ID", value=sent.get("client_id", ""), required=True),
            TargetField("secret", "Client secret", hint, required=is_new, secret=True),
            TargetField("scope", "Scope", "Leave it empty for none.", sent.get("scope", "")),
        ]
    header = "The name of the header that has the key. Leave it empty for Authorization."
    return [
        TargetField("header", "Header", header, sent.get("header", "")),
        TargetField("secret", "Key", hint, required=is_new, secret=True),
    ]


def _function_fields(sent: Mapping[str, Any], is_new: bool) -> list[TargetField]:  # noqa: ARG001
    if sent.get("type") != PYTHON:
        hint = "It is called with the Lambda invoke protocol, as http://billing:9000/invocations."
        return [TargetField("address", "Address", hint, sent.get("address", ""), required=True)]
    roots = tuple(str(folder) for folder in settings.STATEYARD_FUNCTION_FOLDERS)
    if not roots:
        return []
    return [
        TargetField(
            "folder",
            "Folder",
            "A folder that the operator allows.",
            sent.get("folder", ""),
            choices=roots,
        ),
        TargetField(
            "subfolder",
            "Subfolder",
            "A folder in it, as billing/src. Leave it empty for the folder itself.",
            sent.get("subfolder", ""),
        ),
        TargetField(
            "handler",
            "Handler",
            "module:callable, as payments.handlers:charge. The module has to define the callable.",
            sent.get("handler", ""),
            required=True,
        ),
        TargetField(
            "timeout",
            "Timeout in seconds",
            "Leave it empty for 900.",
            str(sent.get("timeout", "")),
        ),
        TargetField(
            "memory", "Memory in MB", "Leave it empty for no limit.", str(sent.get("memory", ""))
        ),
    ]


_FIELDS = {
    TargetKind.SERVICE: _service_fields,
    TargetKind.ADDRESS: lambda _sent, _is_new: [],
    TargetKind.CONNECTION: _connection_fields,
    TargetKind.FUNCTION: _function_fields,
}
