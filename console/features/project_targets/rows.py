"""List a project's targets and functions: its owners' and the operator's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.conf import settings

from console.config.function_options import is_function
from console.db.project_settings import list_settings
from console.features.project_targets import entries
from console.features.project_targets.entries import TargetKind
from console.features.project_targets.store import TYPES, refusal_of_file
from console.integrations import targets
from console.integrations.redaction import without_secrets

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from console.db.project_settings import StoredSetting
    from console.models import Project

_OF_PROJECT = "the operator, for this project"
_OF_SERVER = "the operator, for all projects"


@dataclass(frozen=True, slots=True)
class TargetRow:
    """A row of the page. ``stored``: its setting, None for the operator's.

    ``source``: the operator's file that sets it, "" for an owner's setting. ``problem``: why it has
    no effect.
    """

    kind: str
    name: str
    where: str
    detail: str
    source: str = ""
    problem: str = ""
    stored: StoredSetting | None = None

    @property
    def testable(self) -> bool:
        """Whether it can be tested by a call."""
        return self.stored is not None and self.stored.value.get("type") not in ("API_KEY", "BASIC")

    @property
    def changeable(self) -> bool:
        """Whether it has settings besides its name."""
        return self.kind != TargetKind.ADDRESS


@dataclass(frozen=True, slots=True)
class TargetCard:
    """The rows of a kind. ``label``: column title; ``add``: link text; ``empty``: empty state."""

    kind: str
    title: str
    label: str
    add: str
    empty: str
    rows: list[TargetRow]


_CARDS = (
    (
        "service",
        "AWS services",
        "Service",
        "Add a service",
        "A Task that calls an AWS service needs a target: an emulator, or AWS with an access key.",
    ),
    (
        "address",
        "Addresses of HTTP tasks",
        "Address",
        "Add an address",
        "HTTP tasks call only the addresses in this list.",
    ),
    (
        "connection",
        "Connections of HTTP tasks",
        "Connection",
        "Add a connection",
        "A connection adds credentials to the requests of HTTP tasks.",
    ),
    (
        "function",
        "Functions",
        "Function",
        "Add a function",
        "A Task that invokes a Lambda function calls the function of this name.",
    ),
)


def list_cards(project: Project) -> list[TargetCard]:
    """Return the cards of the page."""
    rows = _list_rows(project)
    return [TargetCard(*card, rows[card[0]]) for card in _CARDS]


def _list_rows(project: Project) -> dict[str, list[TargetRow]]:
    """Return the rows of each kind: the owners' first, then the operator's."""
    own, general = targets.of_file(project.name), settings.STATEYARD_TARGETS
    rows: dict[str, list[TargetRow]] = {}
    for kind in TargetKind:
        stored = [_stored_row(project, each) for each in list_settings(project, kind)]
        rows[kind.name.lower()] = stored
    services = rows["service"]
    services += _service_rows(own, _OF_PROJECT)
    hidden = {row.name for row in services}
    if "*" not in hidden:
        services += [row for row in _service_rows(general, _OF_SERVER) if row.name not in hidden]
    http, source = own.get("http"), _OF_PROJECT
    if http is None and not rows["address"] and not rows["connection"]:
        http, source = general.get("http", {}), _OF_SERVER
    for url in (http or {}).get("endpoints", ()):
        public_url = without_secrets(url)
        rows["address"].append(TargetRow(TargetKind.ADDRESS, public_url, public_url, "", source))
    for name, entry in (http or {}).get("connections", {}).items():
        words = TYPES[entry.get("type", "API_KEY")]
        rows["connection"].append(TargetRow(TargetKind.CONNECTION, name, words, "", source))
    functions = targets.functions_of_file(project.name)
    rows["function"] += _function_rows(functions, _OF_PROJECT)
    return rows


def _stored_row(project: Project, setting: StoredSetting) -> TargetRow:
    kind, value = TargetKind(setting.kind), setting.value
    problem = refusal_of_file(project.name, kind, setting.name) or entries.find_problem(setting)
    if kind == TargetKind.SERVICE:
        where, detail = value.get("endpoint_url", "AWS itself"), value.get("region", "")
    elif kind == TargetKind.CONNECTION:
        where, detail = TYPES[value["type"]], value.get("AuthorizationEndpoint", "")
    elif kind == TargetKind.FUNCTION:
        where, detail = value["handler"], value.get("folder", "")
    else:
        where, detail = setting.name, ""
    return TargetRow(kind, setting.name, where, detail, problem=problem, stored=setting)


def _service_rows(section: Mapping[str, Any], source: str) -> Iterator[TargetRow]:
    for name, entry in section.items():
        if name not in targets.APART and isinstance(entry, dict):
            where = without_secrets(entry.get("endpoint_url") or "AWS itself")
            yield TargetRow(TargetKind.SERVICE, name, where, entry.get("region", ""), source)


def _function_rows(section: Mapping[str, Any], source: str) -> Iterator[TargetRow]:
    for name, entry in section.items():
        if is_function(name, entry):
            handler = entry if isinstance(entry, str) else entry["handler"]
            yield TargetRow(TargetKind.FUNCTION, name, without_secrets(handler), "", source)
