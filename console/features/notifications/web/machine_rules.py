"""Tell which rules can match the events of a state machine's executions."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from django.db.models import prefetch_related_objects

from console.events import body, patterns
from console.features.notifications.store import rules
from console.features.notifications.web import rule_display

if TYPE_CHECKING:
    from console.models import EventRule, StateMachine
    from console.web.core.scope import Scope

MOST_RULES = 200
"""How many rules of a region are looked at, by name."""
_OF_EVENT = ("source", "detail-type", "account", "region")
_DETAIL = frozenset(
    {
        *("executionArn", "stateMachineArn", "name", "status", "startDate", "stopDate"),
        *("input", "output", "inputDetails", "outputDetails", "error", "cause"),
        *("stateMachineVersionArn", "stateMachineAliasArn"),
        *("redriveCount", "redriveDate", "redriveStatus", "redriveStatusReason", "$or"),
    }
)
"""The fields of the detail of "Step Functions Execution Status Change"."""


def rules_of_events(scope: Scope, machine: StateMachine) -> list[rule_display.RuleRow]:
    """Return the rules that can match changes of status of a machine's executions, by name."""
    stored = rules.bus_rules(scope.project, scope.region).exclude(pattern="").order_by("name")
    stored = stored.select_related("project")
    matching = [rule for rule in stored[:MOST_RULES] if _can_match(rule, machine)]
    prefetch_related_objects(matching, "targets")
    return rule_display.list_rows(matching)


def _can_match(rule: EventRule, machine: StateMachine) -> bool:
    """Tell whether a pattern matches what is the same in all events of a machine's executions.

    What differs from one to the next, as status and input, is not looked at.
    """
    try:
        pattern = json.loads(rule.pattern)
        detail = pattern.get("detail", {})
        if not set(detail) <= _DETAIL:
            return False
        fixed = {name: pattern[name] for name in _OF_EVENT if name in pattern}
        if "stateMachineArn" in detail:
            fixed["detail"] = {"stateMachineArn": detail["stateMachineArn"]}
        return not fixed or patterns.parse_pattern(json.dumps(fixed)).matches(_event(machine))
    except (ValueError, AttributeError, TypeError, patterns.PatternError):
        return False


def _event(machine: StateMachine) -> str:
    """Return what is the same in all events of a machine's executions."""
    event: dict[str, Any] = {
        "source": body.SOURCE,
        "detail-type": body.DETAIL_TYPE,
        "account": machine.arn.split(":")[4],
        "region": machine.region,
        "detail": {"stateMachineArn": machine.arn},
    }
    return json.dumps(event)
