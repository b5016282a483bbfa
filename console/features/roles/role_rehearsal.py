"""Rehearse the role of a state machine: fail Tasks that its policies do not allow.

Owners save the policies of a state machine's role as a project setting, and choose whether the
server enforces them. A Task then fails as on AWS, before the call, if no statement allows an action
that it needs, or one denies it. A condition with values unknown at the call is not enforced.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import engine
from console.arns import partition_of
from console.db import project_settings
from console.features.roles.evaluation import (
    Decision,
    PolicyError,
    RoleAccount,
    RoleCall,
    RoleSource,
    RoleVerdict,
    call_needs,
    count_holes,
    decide,
    parse_policy,
    plain_text,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from console.integrations.outcome import TaskAttempt

LONGEST = 100_000
"""Characters of all policies; AWS takes about 70,000 for a role."""
MOST_TEXTS = 3_000
"""Texts of all policies: each may be a pattern to compare with each permission."""
MOST_HOLES = 200
"""Variables such as ``${aws:username}``: comparing them takes longer than comparing texts."""
KIND = project_settings.ROLE
"""The kind of the owners' settings: the state machine is the name."""


@dataclass(frozen=True, slots=True)
class RoleRehearsal:
    """The policies of a state machine's role. ``enforced``: Tasks fail without a permission."""

    policies: tuple[dict[str, Any], ...]
    enforced: bool = False

    @property
    def value(self) -> dict[str, Any]:
        """The value of the setting."""
        return {"policies": list(self.policies), "enforced": self.enforced}

    def role(self, name: str) -> RoleSource:
        """Return the policies in the form of an IAM role."""
        documents = (
            (f"policy {number}", document) for number, document in enumerate(self.policies, 1)
        )
        return RoleSource(name, tuple(documents))


def read_rehearsal(value: Any) -> RoleRehearsal:
    """Return the rehearsal of a setting's value."""
    return RoleRehearsal(tuple(value["policies"]), value["enforced"])


def parse_policies(text: str) -> tuple[dict[str, Any], ...]:
    """Parse a policy, or a list of policies, as JSON; raise PolicyError."""
    if len(text) > LONGEST:
        raise PolicyError(f"policies: got {len(text)} characters, wanted at most {LONGEST}")
    try:
        said = json.loads(text)
        plain = json.dumps(said, ensure_ascii=False)
    except RecursionError:
        raise PolicyError("policies: no JSON: it is nested too deep") from None
    except ValueError as error:
        raise PolicyError(f"policies: no JSON: {error}") from None
    counts = (
        ("quotes", plain.count('"'), 2 * MOST_TEXTS),
        ("variables", count_holes(plain), MOST_HOLES),
    )
    for words, got, most in counts:
        if got > most:
            raise PolicyError(f"policies: got {got} {words}, wanted at most {most}")
    documents = tuple(said if isinstance(said, list) else [said])
    for number, document in enumerate(documents, 1):
        parse_policy(document, f"policy {number}")
    return documents


def enforces(project: str, machine: str) -> bool:
    """Return whether a project enforces the role of a state machine."""
    if machine not in project_settings.names_in_use(KIND):
        return False
    return _enforced_rehearsal(project, machine) is not None


def _enforced_rehearsal(project: str, machine: str) -> RoleRehearsal | None:
    value = project_settings.read_value(project, KIND, machine)
    rehearsal = None if value is None else read_rehearsal(value)
    return rehearsal if rehearsal is not None and rehearsal.enforced else None


def find_refusal(task: TaskAttempt) -> Decision | None:
    """Return the first permission that a task lacks; None if nothing is lacking or enforced."""
    machine = task.machine.name
    if task.assumes_role or not machine or machine not in project_settings.names_in_use(KIND):
        return None
    rehearsal = _enforced_rehearsal(task.project, machine)
    if rehearsal is None:
        return None
    role = rehearsal.role(task.role_arn.rpartition("/")[2])
    return next((each for each in _decisions(task, role) if each.fails), None)


def _decisions(task: TaskAttempt, role: RoleSource) -> Sequence[Decision]:
    """Return a decision on each permission of a task, with the parameters that it calls with."""
    kind = engine.TaskKind(task.kind)
    pattern = engine.IntegrationPattern(task.pattern)
    resource = engine.Resource(task.resource, kind, task.service, task.action, pattern)
    account = RoleAccount(task.execution_arn.split(":")[4], task.region, partition_of(task.region))
    machine = account.arn("states", f"stateMachine:{task.machine.name}")
    call = RoleCall("", resource, json.loads(task.input), account, machine, literal=True)
    return [decide(need, role) for need in call_needs(call)]


def task_refusal(task: TaskAttempt) -> str:
    """Return why the enforced role of a task refuses its call, "" if it does not."""
    refusal = find_refusal(task)
    return "" if refusal is None else refusal_words(refusal)


def refusal_words(decision: Decision) -> str:
    """Return why IAM refuses a call, after the name of the caller."""
    need, resource = decision.need, plain_text(decision.need.resource)
    why = f"because no identity-based policy allows the {need.action} action"
    if decision.verdict is RoleVerdict.DENIED:
        why = "with an explicit deny in an identity-based policy"
    return f"is not authorized to perform: {need.action} on resource: {resource} {why}"
