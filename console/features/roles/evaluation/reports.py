"""Report on a state machine's role: missing, unknown and unused permissions; the least policy."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from console.features.roles.evaluation.patterns import HOLE, Fit
from console.features.roles.evaluation.verdicts import (
    Decision,
    RoleVerdict,
    decide,
    match_statement,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from console.features.roles.evaluation.needs import Need
    from console.features.roles.evaluation.policies import RoleSource

_CONDITION_KEYS = {
    "iam:passedtoservice": "iam:PassedToService",
    "states:httpmethod": "states:HTTPMethod",
    "states:httpendpoint": "states:HTTPEndpoint",
}
"""Condition keys to which the least policy limits an action."""


@dataclass(frozen=True, slots=True)
class UnusedAction:
    """An allowed action that no call of the definition needs."""

    place: str
    action: str
    resources: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RoleReport:
    """The report on a role. ``name``: the state machine; ``role``: None if unknown.

    ``place``: where the state machine is in a file, "" without one.
    """

    name: str
    role: RoleSource | None
    decisions: tuple[Decision, ...]
    unused: tuple[UnusedAction, ...] = ()
    place: str = ""

    @property
    def failing(self) -> tuple[Decision, ...]:
        """The missing or denied permissions."""
        return tuple(decision for decision in self.decisions if decision.fails)

    @property
    def unused_count(self) -> str:
        """The number of unused actions; "-" if a call may need any action."""
        knows_calls = all(decision.need.action for decision in self.decisions)
        return str(len(self.unused)) if knows_calls else "-"

    def of_verdict(self, verdict: RoleVerdict) -> tuple[Decision, ...]:
        """Return the decisions with a verdict."""
        return tuple(each for each in self.decisions if each.verdict is verdict)


def examine(
    needs: Sequence[Need], role: RoleSource | None, name: str, place: str = ""
) -> RoleReport:
    """Decide for each needed permission whether a role's policies allow it.

    ``role``: None if its policies are unknown; then each permission is unknown.
    """
    if role is None:
        why = ("the policies of this role are unknown",)
        decisions = tuple(Decision(need, RoleVerdict.UNKNOWN, "", why) for need in needs)
        return RoleReport(name, role, decisions, (), place)
    decisions = tuple(decide(need, role) for need in needs)
    return RoleReport(name, role, decisions, tuple(_unused_actions(needs, role)), place)


def _unused_actions(needs: Sequence[Need], role: RoleSource) -> list[UnusedAction]:
    """Return the allowed actions that no call needs; none if a call is unknown."""
    if any(not need.action for need in needs):
        return []
    unused = []
    for statement in role.statements:
        if not statement.allows or statement.excludes_actions:
            continue
        for action in statement.actions:
            single = replace(statement, actions=(action,))
            if not any(match_statement(single, need)[0] > Fit.NEVER for need in needs):
                unused.append(UnusedAction(statement.place, action, statement.resources))
    return unused


def least_policy(needs: Sequence[Need]) -> dict[str, Any]:
    """Return the policy that allows exactly the permissions a definition certainly needs.

    A value known only in an execution becomes ``*``.
    """
    by_action: dict[tuple[str, str], set[str]] = {}
    for need in needs:
        if need.action and not need.reason:
            key = need.action, repr(_condition_of(need))
            by_action.setdefault(key, set()).add(_as_pattern(need.resource))
    conditions = {repr(_condition_of(need)): _condition_of(need) for need in needs}
    groups: dict[tuple[tuple[str, ...], str], list[str]] = {}
    for (action, condition), resources in by_action.items():
        listed = ("*",) if "*" in resources else tuple(sorted(resources))
        groups.setdefault((listed, condition), []).append(action)
    statements = [
        _statement(sorted(actions), resources, conditions[condition])
        for (resources, condition), actions in groups.items()
    ]
    statements.sort(key=lambda statement: str(statement["Action"][0]))
    return {"Version": "2012-10-17", "Statement": statements}


def _statement(
    actions: list[str], resources: tuple[str, ...], condition: dict[str, str]
) -> dict[str, Any]:
    body: dict[str, Any] = {"Effect": "Allow", "Action": actions, "Resource": list(resources)}
    if condition:
        body["Condition"] = {"StringEquals": condition}
    return body


def _condition_of(need: Need) -> dict[str, str]:
    """Return the keys and values to which the least policy limits an action."""
    return {
        name: need.context[key][0]
        for key, name in _CONDITION_KEYS.items()
        if key in need.context and need.context[key] and HOLE not in need.context[key][0]
    }


def _as_pattern(resource: str) -> str:
    return resource.replace(HOLE, "*")
