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
    """Return the role of a template's state machine, as ``TemplateRoles.role_of``.

    After an error in a role or a policy of the template, all policies of the role are unread.
    """
    parameters = context[2]
    with parameters.attempt() as attempt:
        return TemplateRoles(*context).role_of(logical_id, said, traced=traced)
    return readable_role(f"{logical_id}Role", (), attempt.missing)


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
        inline = self._list(properties.get("Policies"), policies.gaps, f"{place}: Policies")
        for number, entry in enumerate(inline, 1):
            self._add_document(policies, entry, f"{place}: policy {number}")
        key = "ManagedPolicyArns"
        for entry in self._list(properties.get(key), policies.gaps, f"{place}: {key}"):
            self._add_reference(policies, entry, place)
        name = self._template.physical_name(role_id)
        for policy_id in self._ids(*_ATTACHED):
            roles, gaps = self._attachments(policy_id)
            if name in roles:
                self._add_policy(policies, policy_id)
            else:
                policies.gaps += gaps
        return self._finished(name, policies, properties.get("PermissionsBoundary"), place)

    def _finished(self, name: str, policies: _Policies, boundary: Any, place: str) -> RoleSource:
        """Return a role with its permissions boundary; one that is not here may forbid all."""
        place = f"{place}: PermissionsBoundary"
        limits = _Policies()
        boundary = self._resolved_or_gap(boundary, limits.gaps, place)
        if boundary is not None:
            self._add_reference(limits, boundary, place)
        elif not limits.gaps:
            return readable_role(name, _unique(policies.documents), policies.gaps)
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
        said = self._resolved_parts(properties.get("Policies"), policies.gaps, f"{place}: Policies")
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

    def _attachments(self, policy_id: str) -> tuple[list[Any], list[str]]:
        """Return the names of the roles of a policy, and a gap for each unresolvable name."""
        properties = self._template.properties(policy_id)
        place = f"{self._place}: {policy_id}"
        gaps: list[str] = []
        names = self._list(properties.get("Roles"), gaps, f"{place}: Roles")
        name = self._resolved_or_gap(properties.get("RoleName"), gaps, f"{place}: RoleName")
        return [*names, name], [f"{gap}, so the policy may be attached" for gap in gaps]

    def _add_policy(self, policies: _Policies, policy_id: str) -> None:
        """Add the document of a policy resource; its other properties may have errors."""
        place = f"{self._place}: {policy_id}"
        document = self._resolved(self._template.properties(policy_id).get("PolicyDocument"))
        if document is None:
            policies.gaps.append(f"{place}: the policy cannot be read")
        else:
            policies.documents.append((place, document))

    def _add_document(self, policies: _Policies, said: Any, place: str) -> None:
        if isinstance(said, dict) and "PolicyDocument" in said:
            policies.documents.append((place, said["PolicyDocument"]))
        else:
            policies.gaps.append(f"{place}: the policy cannot be read")

    def _add_reference(self, policies: _Policies, arn: Any, place: str) -> None:
        """Add a managed policy, by its resolved ARN: one of the template, or one of AWS."""
        for policy_id in self._ids("AWS::IAM::ManagedPolicy"):
            if arn in self._arns_of_policy(policy_id):
                self._add_policy(policies, policy_id)
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

    def _resolved_or_gap(self, value: Any, gaps: list[str], place: str) -> Any:
        """Return a resolved value; None for AWS::NoValue, and for an error, which adds a gap."""
        with self._parameters.attempt():
            return self._template.resolve(value)
        gaps.append(f"{place}: the value cannot be resolved")
        return None

    def _resolved_parts(self, value: Any, gaps: list[str], place: str) -> Any:
        """Return a resolved value; if a list has errors, its other entries and a gap for each."""
        if not isinstance(value, list):
            return self._resolved_or_gap(value, gaps, place)
        entries: list[Any] = []
        for number, entry in enumerate(value):  # as a list, which leaves AWS::NoValue out
            entries += self._resolved_or_gap([entry], gaps, f"{place}[{number}]") or []
        return entries

    def _list(self, value: Any, gaps: list[str], place: str) -> list[Any]:
        """Return the entries of a list, with a gap for each that cannot be resolved."""
        resolved = self._resolved_parts(value, gaps, place)
        if resolved is None or isinstance(resolved, list):
            return resolved or []
        gaps.append(f"{place}: the value cannot be resolved")
        return []


def _unique(documents: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """Return each policy once: one may be attached to a role from both sides."""
    return list(dict(documents).items())
