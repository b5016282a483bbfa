"""Parse identity-based IAM policies and the roles that have them.

Source: "IAM JSON policy elements reference". A document of another kind, or with an unknown
element, is refused, so that no part of a policy is ignored.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_ELEMENTS = {
    *("Sid", "Effect", "Action", "NotAction", "Resource", "NotResource", "Condition"),
}
_OF_RESOURCES = {"Principal", "NotPrincipal"}


class PolicyError(ValueError):
    """A policy cannot be evaluated. The message has place, actual and expected value."""


@dataclass(frozen=True, slots=True)
class PolicyStatement:
    """A statement of a policy. ``place``: of policy and statement, for messages.

    ``excludes_actions``, ``excludes_resources``: it has NotAction or NotResource.
    """

    place: str
    allows: bool
    actions: tuple[str, ...]
    resources: tuple[str, ...]
    condition: Mapping[str, Any] = field(default_factory=dict)
    excludes_actions: bool = False
    excludes_resources: bool = False


@dataclass(frozen=True)
class RoleSource:
    """The policies of a role.

    ``name``: the role's name. ``gaps``: unreadable parts, such as an unknown managed policy, which
    may allow more. ``documents``: place -> policy. ``boundary``: its permissions boundary, None
    without one.
    """

    name: str
    documents: tuple[tuple[str, Any], ...] = ()
    gaps: tuple[str, ...] = ()
    boundary: tuple[tuple[str, Any], ...] | None = None

    @cached_property
    def statements(self) -> tuple[PolicyStatement, ...]:
        """The statements of its policies; raise PolicyError."""
        return _statements_of(self.documents)

    @cached_property
    def limits(self) -> tuple[PolicyStatement, ...] | None:
        """The statements of its permissions boundary, None without one; raise PolicyError."""
        return None if self.boundary is None else _statements_of(self.boundary)

    def as_json(self) -> dict[str, Any]:
        """Return the role as a JSON value."""
        return {
            "name": self.name,
            "policies": [list(pair) for pair in self.documents],
            "gaps": list(self.gaps),
            "boundary": None if self.boundary is None else [list(pair) for pair in self.boundary],
        }


def readable_role(
    name: str,
    documents: Iterable[tuple[str, Any]],
    gaps: Iterable[str] = (),
    boundary: Iterable[tuple[str, Any]] | None = None,
) -> RoleSource:
    """Return a role; a policy that cannot be evaluated becomes a gap."""
    readable, missing = [], list(gaps)
    for place, document in documents:
        try:
            parse_policy(document, place)
        except PolicyError as error:
            missing.append(str(error))
        else:
            readable.append((place, document))
    limits = None if boundary is None else tuple(boundary)
    try:
        _statements_of(limits or ())
    except PolicyError as error:  # it may forbid everything
        return RoleSource(name, (), (*missing, str(error)))
    return RoleSource(name, tuple(readable), tuple(missing), limits)


def parse_role(said: Any, place: str) -> RoleSource:
    """Parse the result of ``as_json``; raise PolicyError."""
    if not isinstance(said, dict) or said.keys() != {"name", "policies", "gaps", "boundary"}:
        raise PolicyError(f"{place}: wanted an object with name, policies, gaps and boundary")
    if not isinstance(said["name"], str) or not _are_texts(said["gaps"]):
        raise PolicyError(f"{place}: wanted a text as name, and a list of texts as gaps")
    boundary = said["boundary"]
    documents = _parse_pairs(said["policies"], f"{place}.policies")
    limits = None if boundary is None else _parse_pairs(boundary, f"{place}.boundary")
    role = RoleSource(said["name"], documents, tuple(said["gaps"]), limits)
    _statements_of(role.documents + (role.boundary or ()))
    return role


def _parse_pairs(said: Any, place: str) -> tuple[tuple[str, Any], ...]:
    if not isinstance(said, list) or any(
        not isinstance(pair, list) or len(pair) != 2  # noqa: PLR2004
        for pair in said
    ):
        raise PolicyError(f"{place}: wanted a list of pairs, each a place and a policy")
    return tuple((str(where), document) for where, document in said)


def _are_texts(said: Any) -> bool:
    return isinstance(said, list) and all(isinstance(text, str) for text in said)


def _statements_of(documents: Iterable[tuple[str, Any]]) -> tuple[PolicyStatement, ...]:
    return tuple(
        statement for place, document in documents for statement in parse_policy(document, place)
    )


def parse_policy(document: Any, place: str) -> tuple[PolicyStatement, ...]:
    """Parse a policy; raise PolicyError."""
    document = _unwrapped(document)
    if not isinstance(document, dict) or "Statement" not in document:
        got = "no Statement" if isinstance(document, dict) else f"{_kind_of(document)}"
        raise PolicyError(f"{place}: got {got}, wanted a policy: an object with Statement")
    unknown = document.keys() - {"Version", "Id", "Statement"}
    if unknown:
        raise PolicyError(f"{place}: got the unknown element {min(unknown)}")
    listed = document["Statement"]
    listed = listed if isinstance(listed, list) else [listed]
    return tuple(
        _parse_statement(said, f"{place}: Statement {number}")
        for number, said in enumerate(listed, 1)
    )


def _unwrapped(document: Any) -> Any:
    """Return the policy in the output of ``aws iam get-role-policy`` or ``get-policy-version``."""
    if isinstance(document, dict):
        if "PolicyDocument" in document:
            return document["PolicyDocument"]
        version = document.get("PolicyVersion")
        if isinstance(version, dict) and "Document" in version:
            return version["Document"]
    return document


def _parse_statement(said: Any, place: str) -> PolicyStatement:
    if not isinstance(said, dict):
        raise PolicyError(f"{place}: got {_kind_of(said)}, wanted an object")
    if isinstance(said.get("Sid"), str) and said["Sid"]:
        place = f"{place} ({said['Sid']})"
    for name in said:
        if name in _OF_RESOURCES:
            raise PolicyError(
                f"{place}: got {name}, wanted a policy of a role: it names no principal"
            )
        if name not in _ELEMENTS:
            names = ", ".join(sorted(_ELEMENTS))
            raise PolicyError(f"{place}: got the unknown element {name}, wanted one of {names}")
    if said.get("Effect") not in ("Allow", "Deny"):
        raise PolicyError(f"{place}.Effect: got {said.get('Effect')!r}, wanted Allow or Deny")
    excludes_actions, actions = _one_of(said, "Action", place)
    excludes_resources, resources = _one_of(said, "Resource", place)
    return PolicyStatement(
        place,
        said["Effect"] == "Allow",
        actions,
        resources,
        _parse_condition(said.get("Condition"), f"{place}.Condition"),
        excludes_actions,
        excludes_resources,
    )


def _one_of(said: Mapping[str, Any], name: str, place: str) -> tuple[bool, tuple[str, ...]]:
    """Return the values of ``Action`` or ``NotAction``, and whether it is the latter."""
    present = [key for key in (name, f"Not{name}") if said.get(key) is not None]
    if len(present) != 1:
        got = f"both {name} and Not{name}" if present else "neither"
        raise PolicyError(f"{place}: got {got}, wanted {name} or Not{name}")
    value = said[present[0]]
    values = value if isinstance(value, list) else [value]
    for each in values:
        if not isinstance(each, str):
            raise PolicyError(f"{place}.{present[0]}: got {_kind_of(each)}, wanted a text")
    return present[0] != name, tuple(values)


def _parse_condition(said: Any, place: str) -> dict[str, Any]:
    if said is None:
        return {}
    if not isinstance(said, dict):
        raise PolicyError(f"{place}: got {_kind_of(said)}, wanted an object")
    for operator, keys in said.items():
        if not isinstance(keys, dict):
            raise PolicyError(f"{place}.{operator}: got {_kind_of(keys)}, wanted an object")
        for key, value in keys.items():
            values = value if isinstance(value, list) else [value]
            if any(not isinstance(each, str | bool | int | float) for each in values):
                raise PolicyError(f"{place}.{operator}.{key}: got no text, wanted a text or a list")
    return said


def _kind_of(value: Any) -> str:
    kinds = {dict: "an object", list: "a list", str: "a text", bool: "a boolean"}
    return "null" if value is None else kinds.get(type(value), "a number")
