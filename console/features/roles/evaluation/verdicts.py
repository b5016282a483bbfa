"""Decide whether a role's policies allow a permission: missing, denied, unknown or allowed.

Source: "Policy evaluation logic": an explicit Deny wins, otherwise an Allow is needed, also in the
permissions boundary.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from console.features.roles.evaluation.conditions import match_condition
from console.features.roles.evaluation.patterns import (
    HOLE,
    Fit,
    has_holes,
    match_resource,
    match_text,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from console.features.roles.evaluation.needs import Need
    from console.features.roles.evaluation.policies import PolicyStatement, RoleSource


class RoleVerdict(StrEnum):
    """The verdict of a role's policies on a permission."""

    ALLOWED = "allowed"
    MISSING = "missing"
    """No statement allows it."""
    DENIED = "denied"
    """A statement denies it."""
    UNKNOWN = "unknown"
    """The verdict depends on values that are unknown before the call, or on unknown policies."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The verdict on a permission.

    ``place``: where the deciding statement is, "" without one. ``reasons``: why the verdict is
    unknown.
    """

    need: Need
    verdict: RoleVerdict
    place: str = ""
    reasons: tuple[str, ...] = ()

    @property
    def fails(self) -> bool:
        """Whether the call fails on AWS."""
        return self.verdict in (RoleVerdict.MISSING, RoleVerdict.DENIED)


def decide(need: Need, role: RoleSource) -> Decision:
    """Return the verdict of a role's policies on a permission."""
    if not need.action:
        return Decision(need, RoleVerdict.UNKNOWN, "", (need.reason,))
    decision = _decide_by(need, role.statements, role.gaps)
    if role.limits is not None and decision.verdict in (RoleVerdict.ALLOWED, RoleVerdict.UNKNOWN):
        inside = _decide_by(need, role.limits, ())
        if inside.verdict is not RoleVerdict.ALLOWED:
            decision = inside
    if decision.fails and need.reason:
        return Decision(need, RoleVerdict.UNKNOWN, decision.place, (need.reason,))
    return decision


def _decide_by(need: Need, statements: Sequence[PolicyStatement], gaps: Sequence[str]) -> Decision:
    allowed: tuple[Fit, str] = Fit.NEVER, ""
    denied: tuple[Fit, str] = Fit.NEVER, ""
    reasons: list[str] = []
    for statement in statements:
        outcome, said = match_statement(statement, need)
        if statement.allows and outcome > allowed[0]:
            allowed = outcome, statement.place
        if not statement.allows and outcome > denied[0]:
            denied = outcome, statement.place
        if outcome is Fit.MAYBE:
            reasons += [f"{statement.place}: {reason}" for reason in said]
    if denied[0] is Fit.ALWAYS:
        return Decision(need, RoleVerdict.DENIED, denied[1])
    if allowed[0] is Fit.NEVER and not gaps:
        return Decision(need, RoleVerdict.MISSING)
    if allowed[0] is Fit.ALWAYS and denied[0] is Fit.NEVER:
        return Decision(need, RoleVerdict.ALLOWED, allowed[1])
    if allowed[0] is Fit.NEVER:
        reasons += gaps
    place = denied[1] or allowed[1]
    return Decision(need, RoleVerdict.UNKNOWN, place, tuple(dict.fromkeys(reasons)))


def match_statement(statement: PolicyStatement, need: Need) -> tuple[Fit, list[str]]:
    """Return whether a statement applies to a permission, and why that is uncertain."""
    action = need.action.lower()
    acts = max(
        (match_text(pattern.lower(), action) for pattern in statement.actions),
        default=Fit.NEVER,
    )
    if statement.excludes_actions:
        acts = acts.inverted()
    if acts is Fit.NEVER:
        return acts, []
    spots = max(
        (match_resource(pattern, need.resource) for pattern in statement.resources),
        default=Fit.NEVER,
    )
    if statement.excludes_resources:
        spots = spots.inverted()
    if spots is Fit.NEVER:
        return spots, []
    holds, reasons = match_condition(statement.condition, need.context)
    outcome = min(acts, spots, holds)
    if outcome is Fit.NEVER:
        return outcome, []
    if acts is Fit.MAYBE:
        reasons.append("its actions have a value that is not known")
    if spots is Fit.MAYBE:
        reasons.append(_resource_reason(need.resource, statement.resources))
    return outcome, reasons


def _resource_reason(resource: str, patterns: Sequence[str]) -> str:
    """Return why it is uncertain whether a statement covers a resource."""
    if HOLE in resource:
        return "the resource of the call is known only when it is made"
    if has_holes(resource):
        return f"{resource} has a value that only the deployment knows"
    return f"{', '.join(patterns)} has a value that only the deployment knows"
