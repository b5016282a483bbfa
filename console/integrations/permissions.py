"""Simulate missing IAM permissions: fail Tasks whose role is denied an action in the settings.

``DATA/permissions.json`` (or ``STATEYARD_PERMISSIONS``): ``{"deny": {<role>: [<action>, ...]}}``. A
role is a name or an ARN, an action IAM's name (``sqs:SendMessage``); either may have ``*``. A task
of a state machine with such a role fails with ``States.Permissions`` if it needs such an action,
without a call. Roles are not checked otherwise. Source of the names: the Service Authorization
Reference.

Owners can deny further actions to their project's roles on a page, but not lift the operator's.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from django.conf import settings

from console.db import project_settings
from console.feature import Hook, hooked
from console.integrations import names
from console.integrations.outcome import Failed
from engine import TaskKind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from console.integrations.outcome import TaskAttempt

KIND = "denied-role"
"""The kind of the owners' settings: the role is the name, the actions are the value."""
ERROR = "States.Permissions"
_INVOKE = "lambda:InvokeFunction"
_ACTIONS = {
    ("apigateway", "invoke"): "execute-api:Invoke",
    ("http", "invoke"): "states:InvokeHTTPEndpoint",
    ("lambda", "invoke"): _INVOKE,
    ("aws-sdk:lambda", "invoke"): _INVOKE,
    ("aws-sdk:s3", "headObject"): "s3:GetObject",
    ("aws-sdk:s3", "listObjectsV2"): "s3:ListBucket",
    ("aws-sdk:s3", "listObjects"): "s3:ListBucket",
}
"""Calls whose action IAM names otherwise than the API does."""
_PREFIXES = {"monitoring": "cloudwatch"}
"""Service in a signature -> in IAM, where they differ."""


def find_denial(task: TaskAttempt) -> Failed | None:
    """Return the failure of a task whose role lacks a permission, None if it is allowed."""
    if not task.role_arn:
        return None
    if _denials(task.project):
        action = needed_action(task.kind, task.service, task.action)
        if denies(task.project, task.role_arn, action):
            why = f"because no identity-based policy allows the {action} action"
            return _refused(task, f"is not authorized to perform: {action} {why}")
    for reason_of in hooked(Hook.TASK_REFUSAL):
        if reason := reason_of(task):
            return _refused(task, reason)
    return None


def _refused(task: TaskAttempt, words: str) -> Failed:
    """Return the failure of a task whose role may not make the call."""
    parts = task.execution_arn.split(":")
    session = parts[7] if len(parts) > 7 else "TestState"  # noqa: PLR2004 - an execution's name
    account, _, role = task.role_arn.partition(":role/")
    user = f"{account.replace(':iam:', ':sts:')}:assumed-role/{role}/{session}"
    return Failed(ERROR, f"User: {user} {words}", bool(task.pattern))


def denied_by_operator() -> dict[str, list[str]]:
    """Return role -> actions denied by the operator in every project."""
    denied: dict[str, list[str]] = settings.STATEYARD_PERMISSIONS.get("deny", {})
    return denied


def _denials(project: str) -> list[tuple[str, list[str]]]:
    """Return role -> denied actions: the operator's, and those of a project's owners."""
    denied = list(denied_by_operator().items())
    if project_settings.names_in_use(KIND):
        own = project_settings.read_settings(project, KIND)
        denied += [(role, row.value) for role, row in own.items()]
    return denied


def denies(project: str, role_arn: str, action: str) -> bool:
    """Whether the settings deny a role an action; IAM's actions are case-insensitive."""
    name = role_arn.rpartition("/")[2]
    return bool(action) and any(
        _matches(action, actions)
        for role, actions in _denials(project)
        if fnmatchcase(name, role) or fnmatchcase(role_arn, role)
    )


def _matches(action: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(action.lower(), pattern.lower()) for pattern in patterns)


def needed_action(kind: str, service: str, action: str) -> str:
    """Return the IAM action a task needs, ``dynamodb:PutItem``; "" for an activity."""
    if kind == TaskKind.ACTIVITY:
        return ""
    if kind == TaskKind.LAMBDA:
        return _INVOKE
    iam_action = _ACTIONS.get((service, action))
    if iam_action is not None:
        return iam_action
    operation = names.find_operation(service, action)
    if operation is None:
        return f"{service.removeprefix(names.SDK)}:{action[:1].upper()}{action[1:]}"
    signed = operation.model.service_model.signing_name
    return f"{_PREFIXES.get(signed, signed)}:{operation.model.name}"
