"""Compute the rights of an execution whose Tasks call this server's own API.

An execution has no access key and no role of its own. A call of its Tasks has the least rights, at
the time of the call, of all people it depends on:

* the last editor of its definition (``Execution.edited_by``);
* everybody who started or redrove it (``Execution.acting_for``); if another execution started it,
  everybody whom that execution depends on.

A person who has left the project, or may not sign in any more, has no rights, so the execution has
none either. If the person is unknown (a sample, an import, a row of an earlier release), the
execution has at most the rights of an operator.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING

from django.contrib.auth import get_user_model
from django.db.models import Q

from console.access import Denied, Principal
from console.models import Membership, Role

if TYPE_CHECKING:
    from collections.abc import Collection

    from console.db.audit import Actor
    from console.models import Execution, Project

UNKNOWN = ""
"""Placeholder for an unknown person."""
_ROLES = list(Role)


@lru_cache(maxsize=1024)
def names_as_text(names: tuple[str, ...]) -> str:
    """Return user names for a database column: a JSON array, distinct and sorted."""
    return json.dumps(sorted(set(names)))


BY_EVENT = ", by an event of "
"""The text in ``started_by`` between the name of a rule or schedule and the event's sender."""
_STARTED_BY = 150


def name_with_sender(rule: str, sender: str) -> str:
    """Return ``started_by`` for a rule or schedule: its name, and who sent the event.

    Only the sender is cut to the column's length, so ``started_through`` finds the whole name.
    """
    room = _STARTED_BY - len(rule) - len(BY_EVENT)
    return f"{rule}{BY_EVENT}{sender[:room]}" if sender and room > 0 else rule


def started_through(name: str) -> Q:
    """Return the filter for executions started by a name; for a rule, by any sender."""
    return Q(started_by=name) | Q(started_by__startswith=name + BY_EVENT)


def people_behind(actor: Actor) -> tuple[str, ...]:
    """Return the user names whose rights limit what an actor starts or writes."""
    return actor.acting_for or (actor.name,)


def names_behind(actor: Actor) -> str:
    """Return ``people_behind`` as text for a database column."""
    return names_as_text(people_behind(actor))


def names_in(text: str | None) -> tuple[str, ...]:
    """Parse the user names of a database column; ``UNKNOWN`` if it has none."""
    return tuple(json.loads(text)) if text else (UNKNOWN,)


def starters_of(execution: Execution) -> tuple[str, ...]:
    """Return the names of everybody who started or redrove an execution.

    For an execution of an earlier release: the name shown in lists, if it is a person's, and
    ``UNKNOWN``.
    """
    if execution.acting_for or execution.started_by.startswith(("rule ", "schedule ", "link ")):
        return names_in(execution.acting_for)
    return tuple(sorted({UNKNOWN, execution.started_by}))


def people_of(execution: Execution) -> tuple[str, ...]:
    """Return the user names whose rights limit an execution."""
    return tuple(sorted({*names_in(execution.edited_by), *starters_of(execution)}))


def describe_caller(execution: Execution) -> str:
    """Return an execution as the caller in messages: ``execution ARN, started by NAME``."""
    by = f", started by {execution.started_by}" if execution.started_by else ""
    return f"execution {execution.arn}{by}"


def role_of(names: Collection[str], project: Project) -> Role | None:
    """Return the lowest current role of some people in a project; None if one has no role."""
    people = set(names) - {UNKNOWN}
    members = Membership.objects.filter(
        project=project, user__username__in=people, user__is_active=True
    )
    roles = [Role(role) for role in members.values_list("role", flat=True)]
    if len(roles) < len(people):
        return None
    if UNKNOWN in names or not people:
        roles.append(Role.OPERATOR)
    return min(roles, key=_ROLES.index)


def principal_of(execution: Execution, action: str) -> Principal:
    """Return an execution as the principal of an API call; its project must be loaded.

    ``action``: with its service, as ``events:PutEvents``.

    Raise ``Denied`` if it has no rights at all; ``access.authorize`` checks the action itself.
    """
    role = role_of(people_of(execution), execution.project)
    if role is None:
        who = describe_caller(execution)
        raise Denied(f"User: {who} is not authorized to perform: {action}")
    return principal_with(execution, role)


def principal_with(execution: Execution, role: Role) -> Principal:
    """Return an execution as a principal with a role; its project must be loaded."""
    user = get_user_model()(username=describe_caller(execution))  # no row, so no sign-in
    return Principal(user, execution.project, role)
