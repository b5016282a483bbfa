"""Read the policies of a state machine's role from a template, and name what cannot be read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from console.features.roles.evaluation import RoleSource, managed_policy, readable_role
from console.features.roles.files.sam_policies import policy_of_template

if TYPE_CHECKING:
    from console.cli.account import Account
    from console.features.deploy.intrinsics import Template
    from console.features.deploy.parameters import Parameters

_ATTACHED = ("AWS::IAM::Policy", "AWS::IAM::ManagedPolicy", "AWS::IAM::RolePolicy")
_TRACING = "AWSXRayDaemonWriteAccess"


@dataclass
class _Policies:
    """The policies of a role read so far, and the parts that cannot be read."""

    documents: list[tuple[str, Any]] = field(default_factory=list)
    gaps: list[str] = field(default_factory=list)

    def add_managed(self, name: Any, place: str) -> None:
        """Add a policy that AWS manages, by name or ARN."""
        document = managed_policy(str(name))
        if document is None:
            self.gaps.append(f"{place}: the policy {name} is not here")
        else:
            self.documents.append((f"{place}: {str(name).rpartition('/')[2]}", document))


def template_role(
    context: tuple[Template, Account, Parameters, str],
    logical_id: str,
    said: Any,
    *,
    traced: bool,
) -> RoleSource | None:
    """Return the role of a template's state machine, as ``TemplateRoles.role_of``."""
    return TemplateRoles(*context).role_of(logical_id, said, traced=traced)


class TemplateRoles:
    """The roles of a template."""

    def __init__(
        self, template: Template, account: Account, parameters: Parameters, place: str
    ) -> None:
        self._template, self._account, self._parameters = template, account, parameters
        self._place = place

    def role_of(self, logical_id: str, said: Any, *, traced: bool) -> RoleSource | None:
        """Return the role of a state machine, None if it is not in the template.

        ``said``: its Role; None for a role that SAM makes of its Policies. ``traced``: X-Ray is on.
        """
        gaps = self._connectors(logical_id)
        if said is None:
            return self._generated(logical_id, gaps, traced=traced)
        arn = self._resolved(said)
        for role_id in self._ids("AWS::IAM::Role"):
            if isinstance(arn, str) and arn == self._template.arn_of(role_id):
                return self.read_role(role_id, gaps)
        return None

    def read_role(self, role_id: str, gaps: list[str]) -> RoleSource:
        """Return a role of the template with all policies that are attached to it."""
        policies = _Policies(gaps=list(gaps))
        place = f"{self._place}: {role_id}"
        properties = self._template.properties(role_id)
        for number, entry in enumerate(self._resolved_list(properties.get("Policies")), 1):
            self._add_document(policies, entry, f"{place}: policy {number}")
        for entry in self._resolved_list(properties.get("ManagedPolicyArns")):
            self._add_reference(policies, entry, place)
        name = self._template.physical_name(role_id)
        for policy_id in self._ids(*_ATTACHED):
            said = self._template.properties(policy_id)
            roles = [*self._resolved_list(said.get("Roles")), self._resolved(said.get("RoleName"))]
            if name in roles:
                self._add_document(policies, self._resolved(said), f"{self._place}: {policy_id}")
        return self._finished(name, policies, properties.get("PermissionsBoundary"), place)

    def _finished(self, name: str, policies: _Policies, boundary: Any, place: str) -> RoleSource:
        """Return a role with its permissions boundary; one that is not here may forbid all."""
        boundary = self._resolved(boundary)
        if boundary is None:
            return readable_role(name, _unique(policies.documents), policies.gaps)
        limits = _Policies()
        self._add_reference(limits, boundary, f"{place}: PermissionsBoundary")
        if limits.gaps:
            unread = [f"{gap}, which may forbid more" for gap in limits.gaps]
            return readable_role(name, (), [*policies.gaps, *unread])
        documents = _unique(policies.documents)
        return readable_role(name, documents, policies.gaps, limits.documents)

    def _generated(self, logical_id: str, gaps: list[str], *, traced: bool) -> RoleSource:
        """Return the role that SAM makes of the Policies of a state machine."""
        policies = _Policies(gaps=gaps)
        place = f"{self._place}: {logical_id}"
        properties = self._template.properties(logical_id)
        said = self._resolved(properties.get("Policies"))
        entries = said if isinstance(said, list) else [] if said is None else [said]
        for number, resolved in enumerate(entries, 1):
            where = f"{place}: policy {number}"
            if isinstance(resolved, str):
                self._add_reference(policies, resolved, place)
            elif isinstance(resolved, dict) and "Statement" in resolved:
                policies.documents.append((where, resolved))
            elif isinstance(resolved, dict) and len(resolved) == 1:
                ((name, values),) = resolved.items()
                document = policy_of_template(str(name), values or {}, self._account)
                if document is None:
                    policies.gaps.append(f"{where}: SAM's policy template {name} is not here")
                else:
                    policies.documents.append((f"{where}: {name}", document))
            else:
                policies.gaps.append(f"{where}: the policy cannot be read")
        if traced:
            policies.add_managed(_TRACING, place)
        boundary = properties.get("PermissionsBoundary")
        return self._finished(f"{logical_id}Role", policies, boundary, place)

    def _add_document(self, policies: _Policies, said: Any, place: str) -> None:
        if isinstance(said, dict) and "PolicyDocument" in said:
            policies.documents.append((place, said["PolicyDocument"]))
        else:
            policies.gaps.append(f"{place}: the policy cannot be read")

    def _add_reference(self, policies: _Policies, arn: Any, place: str) -> None:
        """Add a managed policy, by its resolved ARN: one of the template, or one of AWS."""
        for policy_id in self._ids("AWS::IAM::ManagedPolicy"):
            if arn in self._arns_of_policy(policy_id):
                resolved = self._resolved(self._template.properties(policy_id))
                self._add_document(policies, resolved, f"{self._place}: {policy_id}")
                return
        policies.add_managed(arn, place)

    def _arns_of_policy(self, policy_id: str) -> list[Any]:
        """Return the values that stand for the ARN of a managed policy of the template."""
        references = {"Ref": policy_id}, {"Fn::GetAtt": [policy_id, "PolicyArn"]}
        arns = [self._resolved(reference) for reference in references]
        properties = self._template.properties(policy_id)
        name = self._resolved(properties.get("ManagedPolicyName"))
        if name is not None:
            path = self._resolved(properties.get("Path")) or "/"
            account = self._account
            arns.append(f"arn:{account.partition}:iam::{account.number}:policy{path}{name}")
        return arns

    def _connectors(self, logical_id: str) -> list[str]:
        """Return a gap for each connector of SAM that starts at a state machine."""
        embedded = (self._template.resource(logical_id) or {}).get("Connectors")
        names = list(embedded) if isinstance(embedded, dict) else []
        for connector in self._ids("AWS::Serverless::Connector"):
            source = self._template.properties(connector).get("Source")
            if isinstance(source, dict) and source.get("Id") == logical_id:
                names.append(connector)
        return [
            f"{self._place}: the policies of the connector {name} are unknown" for name in names
        ]

    def _ids(self, *kinds: str) -> list[str]:
        """Return the logical ids of the resources of some types whose conditions hold."""
        listed = []
        for logical_id in self._template.section("Resources"):
            resource = self._template.resource(logical_id) or {}
            if resource.get("Type") in kinds and self._template.holds(resource.get("Condition")):
                listed.append(logical_id)
        return listed

    def _resolved(self, value: Any) -> Any:
        """Return a value with ``${Name}`` for each value that only AWS can supply."""
        with self._parameters.attempt():
            return self._template.resolve(value)
        return None  # an error in it, which attempt takes

    def _resolved_list(self, value: Any) -> list[Any]:
        resolved = self._resolved(value)
        return resolved if isinstance(resolved, list) else []


def _unique(documents: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """Return each policy once: one may be attached to a role from both sides."""
    return list(dict(documents).items())
