"""Export and import targets and functions in a project's settings file (YAML).

An entry has the members of ``targets.json`` and ``functions.json``, without secrets. An import
keeps the stored secrets of an entry whose destination is unchanged. Otherwise the entry has no
effect until its secrets are entered on its page.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from console.db import project_settings
from console.db.setting_sections import CheckedEntry, MemberError, SettingSection
from console.features.project_targets import entries, fields, folders, store
from console.features.project_targets.entries import TargetKind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from console.models import Project

_PAGE = "own-targets"
_MEMBERS: dict[str, dict[str, tuple[type, ...]]] = {
    "service": {"endpoint_url": (str,), "region": (str,)},
    "API_KEY": {"type": (str,), "name": (str,)},
    "BASIC": {"type": (str,), "username": (str,)},
    "OAUTH_CLIENT_CREDENTIALS": {
        "type": (str,),
        "AuthorizationEndpoint": (str,),
        "HttpMethod": (str,),
        "ClientID": (str,),
        "scope": (str,),
    },
    "function": {
        "handler": (str,),
        "folder": (str,),
        "timeout": (int, float),
        "memory": (int,),
    },
}
"""Kind of an entry, or type of a connection -> its members and their types."""
_WORDS = {(str,): "a text", (int,): "a whole number", (int, float): "a number"}
_OF_FIELD = {
    "address": "handler",
    "authorization_endpoint": "AuthorizationEndpoint",
    "client_id": "ClientID",
    "header": "name",
    "method": "HttpMethod",
    "name": "",
    "subfolder": "folder",
}
"""Field of a form -> the member of an entry, where it is called otherwise."""


def sections() -> tuple[SettingSection, ...]:
    """Return the sections of the file (``Hook.SETTING_SECTIONS``)."""
    return (
        _section("targets", TargetKind.SERVICE),
        _section("addresses", TargetKind.ADDRESS),
        _section("connections", TargetKind.CONNECTION),
        _section("functions", TargetKind.FUNCTION),
    )


def _section(name: str, kind: TargetKind) -> SettingSection:
    return SettingSection(
        name,
        kind,
        lambda project, entry, value: _check(project, kind, entry, value),
        lambda value: _in_words(kind, value),
        entries.lacking_secrets,
        _PAGE,
        is_list=kind == TargetKind.ADDRESS,
    )


def _check(project: Project, kind: TargetKind, name: str, value: Any) -> CheckedEntry:
    """Return an entry in stored form; raise ``MemberError``."""
    if kind != TargetKind.ADDRESS:
        _check_members(kind, value)
    if "folder" in value and folders.folder_refusal(value["folder"]):
        raise MemberError("folder", folders.folder_refusal(value["folder"]))
    sent = {**_EMPTY[kind], **_as_texts(fields.sent_of(kind, value)), "name": name}
    try:
        new = store.check_target(project, kind, sent)
    except store.TargetError as error:
        member = _OF_FIELD.get(error.field, error.field)
        raise MemberError(member, error.words.removesuffix(".")) from None
    lacking = entries.secrets_in_words(kind, new.value)
    row = project_settings.find_setting(project, kind, new.name)
    if not lacking or row is None or not row.sealed:
        return CheckedEntry(new.name, new.value, lacking)
    is_moved = store.sends_elsewhere(new, row, kind)
    return CheckedEntry(new.name, new.value, lacking if is_moved else "", drops_secrets=is_moved)


def _check_members(kind: TargetKind, value: Any) -> None:
    """Raise ``MemberError`` unless an entry has known members of the right types."""
    if not isinstance(value, dict):
        raise _mismatch("", _without_secret(value), f"members such as {_example(kind)}")
    group = kind.name.lower()
    if kind == TargetKind.CONNECTION:
        group = value.get("type", "")
        if not isinstance(group, str) or group not in store.TYPES:
            types = ", ".join(store.TYPES)
            raise _mismatch("type", _without_secret(value.get("type")), f"one of {types}")
    members = _MEMBERS[group]
    for member, content in value.items():
        if member in entries.SECRET_WORDS:
            none = "none: a secret is entered on the page after the import"
            raise _mismatch(member, "a secret", none)
        if member not in members:
            raise _mismatch(member, "an unknown name", f"one of {', '.join(members)}")
        if not isinstance(content, members[member]) or isinstance(content, bool):
            raise _mismatch(member, _without_secret(content), _WORDS[members[member]])
    if kind == TargetKind.FUNCTION and "handler" not in value:
        raise _mismatch("handler", "nothing", "an address or module:callable")


def _mismatch(member: str, got: str, expected: str) -> MemberError:
    """Return the error for an invalid member."""
    return MemberError(member, f"got {got}, wanted {expected}")


def _example(kind: TargetKind) -> str:
    return {TargetKind.SERVICE: "endpoint_url", TargetKind.CONNECTION: "type"}.get(kind, "handler")


def _without_secret(value: Any) -> str:
    """Return a value for an error message, without a possible secret."""
    if value is None:
        return "nothing"
    if isinstance(value, str):
        return "a text"
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    return repr(value)


def _as_texts(sent: Mapping[str, Any]) -> dict[str, str]:
    return {name: str(value) for name, value in sent.items()}


def _in_words(kind: TargetKind, value: Mapping[str, Any]) -> str:
    """Return a value for plans and the audit trail."""
    if kind == TargetKind.ADDRESS:
        return "allowed"
    words = value.get("handler") or value.get("AuthorizationEndpoint") or value.get("endpoint_url")
    if kind == TargetKind.CONNECTION:
        words = ", ".join(filter(None, (store.TYPES[value["type"]], words)))
    details = [f"{name} {text}" for name, text in value.items() if name in _DETAILS and text]
    return ", ".join([words or "AWS itself", *details])


_DETAILS = frozenset(
    ("region", "folder", "timeout", "memory", "name", "username", "HttpMethod", "ClientID", "scope")
)
_EMPTY: dict[TargetKind, dict[str, str]] = {
    TargetKind.SERVICE: dict.fromkeys(
        ("endpoint_url", "region", "access_key_id", "secret_access_key"), ""
    ),
    TargetKind.ADDRESS: {},
    TargetKind.CONNECTION: {"secret": ""},
    TargetKind.FUNCTION: dict.fromkeys(("timeout", "memory"), ""),
}
"""Fields of a form that an entry may leave out."""
