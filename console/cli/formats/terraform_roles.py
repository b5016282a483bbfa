"""Read the role of a state machine from Terraform's JSON: its policies, and what only AWS knows."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from console.roles import RoleSource, managed_policy, readable_role

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_MACHINE_ROLE = "role_arn"
_AFTER_APPLY = "is known after apply (the state has it then)"


def references_of(document: dict[str, Any]) -> dict[str, list[str]]:
    """Return ``ADDRESS.FIELD`` -> the addresses that it refers to, of the plan's root module."""
    configuration = document.get("configuration")
    module = configuration.get("root_module") if isinstance(configuration, dict) else None
    listed = module.get("resources") if isinstance(module, dict) else None
    references: dict[str, list[str]] = {}
    for resource in listed if isinstance(listed, list) else ():
        expressions = resource.get("expressions") if isinstance(resource, dict) else None
        for name, said in expressions.items() if isinstance(expressions, dict) else ():
            if isinstance(said, dict) and isinstance(said.get("references"), list):
                references[f"{resource.get('address')}.{name}"] = said["references"]
    return references


class TerraformRoles:
    """The roles of a state or a plan. ``references``: those of the plan's configuration."""

    def __init__(
        self,
        resources: Sequence[tuple[str, str, dict[str, Any]]],
        references: dict[str, list[str]],
        place: str,
    ) -> None:
        self._resources, self._references, self._place = resources, references, place

    def role_of(self, address: str, machine: dict[str, Any]) -> RoleSource | None:
        """Return the role of a state machine, None if it is not among the resources."""
        for role_address, said in self._of_kind("aws_iam_role"):
            if self._refers(address, machine, _MACHINE_ROLE, role_address, said.get("arn")):
                return self._read(role_address, said)
        return None

    def _read(self, address: str, role: dict[str, Any]) -> RoleSource:
        documents: list[tuple[str, Any]] = []
        gaps: list[str] = []
        name = role.get("name")
        for number, inline in enumerate(role.get("inline_policy") or (), 1):
            if inline.get("policy"):
                self._add(documents, gaps, inline["policy"], f"{address}: policy {number}")
        for arn in role.get("managed_policy_arns") or ():
            self._add_managed(documents, gaps, arn, address)
        for policy_address, policy in self._of_kind("aws_iam_role_policy"):
            if self._refers(policy_address, policy, "role", address, name):
                self._add(documents, gaps, policy.get("policy"), policy_address)
        for attachment, said in self._attachments(address, name):
            self._attach(documents, gaps, attachment, said)
        if role.get("permissions_boundary"):
            gaps.append(f"{self._place}: {address}.permissions_boundary may forbid more")
            documents = []
        return readable_role(str(name or address), documents, gaps)

    def _attachments(self, address: str, name: Any) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the attachments of policies to a role."""
        for attachment, said in self._of_kind("aws_iam_role_policy_attachment"):
            if self._refers(attachment, said, "role", address, name):
                yield attachment, said
        for attachment, said in self._of_kind("aws_iam_policy_attachment"):
            references = self._references.get(f"{attachment}.roles", [])
            if name in (said.get("roles") or ()) or f"{address}.name" in references:
                yield attachment, said

    def _attach(
        self, documents: list[tuple[str, Any]], gaps: list[str], address: str, said: dict[str, Any]
    ) -> None:
        """Add the policy of an attachment: one of the plan, or one of AWS."""
        for policy_address, policy in self._of_kind("aws_iam_policy"):
            if self._refers(address, said, "policy_arn", policy_address, policy.get("arn")):
                self._add(documents, gaps, policy.get("policy"), policy_address)
                return
        self._add_managed(documents, gaps, said.get("policy_arn"), address)

    def _add(
        self, documents: list[tuple[str, Any]], gaps: list[str], text: Any, address: str
    ) -> None:
        place = f"{self._place}: {address}"
        if not isinstance(text, str):
            gaps.append(f"{place}: the policy {_AFTER_APPLY}")
            return
        try:
            documents.append((place, json.loads(text)))
        except (ValueError, RecursionError) as error:
            gaps.append(f"{place}: no JSON: {error}")

    def _add_managed(
        self, documents: list[tuple[str, Any]], gaps: list[str], arn: Any, address: str
    ) -> None:
        place = f"{self._place}: {address}"
        document = managed_policy(arn) if isinstance(arn, str) else None
        if document is None:
            words = f"the policy {arn} is not here" if arn else f"its policy {_AFTER_APPLY}"
            gaps.append(f"{place}: {words}")
        else:
            documents.append((f"{place}: {str(arn).rpartition('/')[2]}", document))

    def _of_kind(self, kind: str) -> Iterator[tuple[str, dict[str, Any]]]:
        for address, own_kind, said in self._resources:
            if own_kind == kind:
                yield address, said

    def _refers(
        self, address: str, said: dict[str, Any], field: str, other: str, value: Any
    ) -> bool:
        """Whether a field has a value of another resource, or the plan says that it will."""
        if said.get(field) not in (None, ""):
            return value is not None and bool(said[field] == value)
        named = self._references.get(f"{address}.{field}", [])
        return any(each == other or each.startswith(f"{other}.") for each in named)
