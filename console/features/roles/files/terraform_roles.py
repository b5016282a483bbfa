"""Read the role of a state machine from Terraform's JSON: its policies, and what only AWS knows."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from console.features.roles.evaluation import RoleSource, managed_policy, readable_role

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from console.features.deploy.formats.terraform_references import PlannedReferences

_MACHINE_ROLE = "role_arn"
_ATTACHMENTS = {"aws_iam_role_policy_attachment": "role", "aws_iam_policy_attachment": "roles"}
"""Resource -> its field with the name of a role, or with several."""
_AFTER_APPLY = "is known after apply (the state has it then)"


def terraform_role(
    resources: Sequence[tuple[str, str, dict[str, Any]]],
    references: PlannedReferences,
    place: str,
    address: str,
    machine: dict[str, Any],
) -> RoleSource | None:
    """Return the role of a state machine of a state or a plan, None if it is not in it."""
    return TerraformRoles(resources, references, place).role_of(address, machine)


class TerraformRoles:
    """The roles of a state or a plan. ``references``: those of the plan's configuration."""

    def __init__(
        self,
        resources: Sequence[tuple[str, str, dict[str, Any]]],
        references: PlannedReferences,
        place: str,
    ) -> None:
        self._resources, self._references, self._place = resources, references, place

    def role_of(self, address: str, machine: dict[str, Any]) -> RoleSource | None:
        """Return the role of a state machine, None if its resource is uncertain."""
        for role_address, said in self._of_kind("aws_iam_role"):
            if self._refers(address, machine, _MACHINE_ROLE, role_address, said.get("arn")):
                return self._read(role_address, said)
        return None

    def _read(self, address: str, role: dict[str, Any]) -> RoleSource:
        documents: list[tuple[str, Any]] = []
        gaps: list[str] = []
        name = role.get("name")
        self._add_own(documents, gaps, address, role)
        for policy_address, policy in self._of_kind("aws_iam_role_policy"):
            if self._belongs(gaps, policy_address, policy, "role", address, name):
                self._add(documents, gaps, policy.get("policy"), policy_address)
        for kind, field in _ATTACHMENTS.items():
            for attachment, said in self._of_kind(kind):
                if self._belongs(gaps, attachment, said, field, address, name):
                    self._attach(documents, gaps, attachment, said)
        limit = "permissions_boundary"
        if role.get(limit) or self._is_unknown(address, role, limit):
            gaps.append(f"{self._place}: {address}.{limit} may forbid more")
            documents = []
        return readable_role(str(name or address), documents, gaps)

    def _add_own(
        self, documents: list[tuple[str, Any]], gaps: list[str], address: str, role: dict[str, Any]
    ) -> None:
        """Add the policies in the role itself: its inline policies, and the ARNs of others."""
        for number, inline in enumerate(role.get("inline_policy") or (), 1):
            if inline.get("policy") or "policy" not in inline:  # a role without any has an empty
                self._add(documents, gaps, inline.get("policy"), f"{address}: policy {number}")
        for arn in role.get("managed_policy_arns") or ():
            self._attach(documents, gaps, address, {"policy_arn": arn})
        if self._is_unknown(address, role, "managed_policy_arns"):
            gaps.append(f"{self._place}: {address}.managed_policy_arns {_AFTER_APPLY}")

    def _belongs(
        self,
        gaps: list[str],
        address: str,
        said: dict[str, Any],
        field: str,
        role: str,
        name: Any,
    ) -> bool:
        """Return whether a policy or attachment is of a role; add a gap if that is unknown."""
        belongs = self._refers(address, said, field, role, name)
        if belongs is None:
            gaps.append(f"{self._place}: {address}.{field} {_AFTER_APPLY}")
        return bool(belongs)

    def _is_unknown(self, address: str, said: dict[str, Any], field: str) -> bool:
        """Return whether a plan omits the value of a field that the configuration sets."""
        return field not in said and self._references.has(address, field)

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
    ) -> bool | None:
        """Return whether a field has a value of another resource; None if only the apply knows."""
        own = said.get(field)
        if isinstance(own, list):
            return value is not None and value in own
        if own not in (None, ""):
            return value is not None and bool(own == value)
        return self._references.refers(address, field, other)
