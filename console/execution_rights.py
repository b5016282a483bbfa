"""The rights of an execution that calls Step Functions itself.

An execution has no key and no role of its own. Each call of one of its Tasks has the least of the
rights, as they are at the time of the call, of everybody it depends on:

* who last edited the definition that it runs (``Execution.edited_by``);
* who started it, and whoever has redriven it since (``Execution.acting_for``). Of an execution that
  another one has started, that is everybody the other one depends on.

A person who has left the project, or may not sign in any more, has no rights, so neither has the
execution. Where it is not known who it was - a sample, an import from the command line, a row of an
earlier release - the execution may do what an operator may, and no more.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from django.contrib.auth import get_user_model
from django.db.models import Q

from console.access import Denied, Principal
from console.models import Membership, Role

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from console.db.audit import Actor
    from console.models import Execution, Project

UNKNOWN = ""
"""Stands for a person nobody knows of."""
_ROLES = list(Role)


def names_as_text(names: Iterable[str]) -> str:
    """Return user names as a row keeps them: a JSON array, each name once, sorted."""
    return json.dumps(sorted(set(names)))


BY_EVENT = ", by an event of "
"""In ``started_by``: between the name of a rule or schedule and that of the event's sender."""
_STARTED_BY = 150


def name_with_sender(rule: str, sender: str) -> str:
    """Return the name of a rule or schedule with who put the event, as ``started_by`` has it.

    ``started_through`` finds it by all but the sender, so that alone is cut to the column.
    """
    room = _STARTED_BY - len(rule) - len(BY_EVENT)
    return f"{rule}{BY_EVENT}{sender[:room]}" if sender and room > 0 else rule


def started_through(name: str) -> Q:
    """Return the filter for executions started by a name; by a rule, for any sender."""
    return Q(started_by=name) | Q(started_by__startswith=name + BY_EVENT)


def people_behind(actor: Actor) -> tuple[str, ...]:
    """Return the user names whose rights bound what an actor starts or writes."""
    return actor.acting_for or (actor.name,)


def names_behind(actor: Actor) -> str:
    """Return ``people_behind`` an actor as a row keeps them."""
    return names_as_text(people_behind(actor))


def names_in(text: str | None) -> tuple[str, ...]:
    """Return the user names that a row keeps; ``UNKNOWN`` if it keeps none."""
    return tuple(json.loads(text)) if text else (UNKNOWN,)


def starters_of(execution: Execution) -> tuple[str, ...]:
    """Return who has started and redriven an execution.

    Of one that an earlier release started: the name that its lists show, as far as it is a
    person's, and somebody unknown.
    """
    if execution.acting_for or execution.started_by.startswith(("rule ", "schedule ", "link ")):
        return names_in(execution.acting_for)
    return tuple(sorted({UNKNOWN, execution.started_by}))


def people_of(execution: Execution) -> tuple[str, ...]:
    """Return whose rights bound those of an execution."""
    return tuple(sorted({*names_in(execution.edited_by), *starters_of(execution)}))


def describe_caller(execution: Execution) -> str:
    """Return how an execution is called where it acts: ``execution ARN, started by NAME``."""
    by = f", started by {execution.started_by}" if execution.started_by else ""
    return f"execution {execution.arn}{by}"


def role_of(names: Collection[str], project: Project) -> Role | None:
    """Return the least of the roles that people have in a project now; None if one has none."""
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
    """Return an execution as who calls an action of the API; its project must be loaded.

    ``action``: with its service, as ``events:PutEvents``.

    Raise ``Denied`` if it has no rights at all; which ones an action takes is for
    ``access.authorize`` to say.
    """
    role = role_of(people_of(execution), execution.project)
    if role is None:
        who = describe_caller(execution)
        raise Denied(f"User: {who} is not authorized to perform: {action}")
    return principal_with(execution, role)


def principal_with(execution: Execution, role: Role) -> Principal:
    """Return an execution as who calls with a role; its project must be loaded."""
    user = get_user_model()(username=describe_caller(execution))  # of no row: nobody signs in as it
    return Principal(user, execution.project, role)
