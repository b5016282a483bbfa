"""Store versions and aliases of state machines, and resolve an ARN to the definition to start."""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from console import arns
from console.db import audit, clock
from console.db.writer import write
from console.errors import (
    ConflictException,
    ErrorCode,
    ServiceError,
    StateMachineDoesNotExist,
    ValidationException,
)
from console.models import Alias, StateMachine, Version
from console.statuses import MachineStatus
from console.store.machines import machines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from console.models import Execution, Project

Routing = list[list[int]]  # [version number, weight], one or two
_MOST_DIGITS = 9
_MAX_VERSIONS = 1_000
_MAX_ALIASES = 100
_BAD_ROUTING = "INVALID_ROUTING_CONFIGURATION"
_NOT_THERE = "Request references a resource that does not exist."


@dataclass(frozen=True, slots=True)
class Target:
    """A machine, and the version if its ARN names a version or alias."""

    machine: StateMachine
    version: Version | None = None
    alias: Alias | None = None


def _is_number(text: str) -> bool:
    """Return whether a text can be the number of a version (Python reads at most 4,300 digits)."""
    return text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS


def resolve_target(project: Project, arn: str, *, cached: bool = False) -> Target:
    """Return the target of a machine, version or alias ARN. An alias picks a version by weight.

    ``cached``: allow a cached machine (``machines.kept_machine``). Raises InvalidArn or
    StateMachineDoesNotExist.
    """
    parsed = arns.parse_arn(arn, "stateMachine")
    _, mark, qualifier = parsed.rest.partition(":")
    if not mark:
        find = machines.kept_machine if cached else machines.get_machine
        return Target(find(project, arn))
    machine = machines.get_machine(project, arn.removesuffix(f":{qualifier}"))
    if _is_number(qualifier):
        return Target(machine, _version(machine, int(qualifier), arn))
    alias = Alias.objects.filter(arn=arn).first()
    if alias is None:
        raise StateMachineDoesNotExist(f"State Machine Does Not Exist: '{arn}'")
    return Target(machine, _version(machine, _pick(json.loads(alias.routing)), arn), alias)


def _version(machine: StateMachine, number: int, arn: str) -> Version:
    rows = Version.objects.select_related("definition", "state_machine")
    version = rows.filter(state_machine=machine, number=number).first()
    if version is None:
        raise StateMachineDoesNotExist(f"State Machine Does Not Exist: '{arn}'")
    return version


def _pick(routing: Routing) -> int:
    """Return a version number by weight; the weights sum to 100."""
    drawn = secrets.randbelow(100)
    for number, weight in routing:
        drawn -= weight
        if drawn < 0:
            return number
    return routing[0][0]


# -- versions --------------------------------------------------------------------------------------


def publish_version(
    machine: StateMachine,
    *,
    description: str = "",
    revision_id: str | None = None,
    redescribe: bool = False,
    actor: audit.Actor = audit.NOBODY,
) -> Version:
    """Publish the current revision of the machine; return its version if it is published already.

    ``redescribe``: a new description publishes a new version of the same revision, as
    UpdateStateMachine does. PublishStateMachineVersion ignores the description.

    Raises ConflictException if the current revision is not ``revision_id``, StateMachineDeleting,
    or ServiceQuotaExceededException.
    """

    def store() -> Version:
        row = _active(machine)
        current = row.revision_id or "INITIAL"
        if revision_id is not None and revision_id != current:
            raise ConflictException(
                "Failed to publish the State Machine version for revision "
                f"{revision_id}. The current State Machine revision is {current}."
            )
        rows = Version.objects.select_related("state_machine").filter(state_machine=row)
        latest = rows.filter(revision_id=row.revision_id).order_by("-number").first()
        renamed = redescribe and description not in ("", latest.description if latest else "")
        if latest is not None and not renamed:
            return latest
        if rows.count() >= _MAX_VERSIONS:
            raise ServiceError(
                ErrorCode.ServiceQuotaExceededException,
                f"The state machine has {_MAX_VERSIONS} versions, the maximum",
            )
        version = Version(
            state_machine=row,
            number=row.next_version,
            revision_id=row.revision_id,
            definition_id=row.definition_id,
            role_arn=row.role_arn,
            description=description,
            created_ms=clock.now_ms(),
            edited_by=row.edited_by,
            logging=row.logging,
            tracing=row.tracing,
            encryption=row.encryption,
        )
        version.save(force_insert=True)
        StateMachine.objects.filter(pk=row.pk).update(next_version=row.next_version + 1)
        audit.record(row.project, actor, "PublishStateMachineVersion", version.arn)
        return version

    return write(store)


def delete_version(project: Project, arn: str, actor: audit.Actor = audit.NOBODY) -> None:
    """Delete a version. Do nothing if it is missing; raise ConflictException if in an alias."""
    plain, _, number = arn.rpartition(":")
    arns.parse_arn(arn, "stateMachine")

    def store() -> None:
        # The lock keeps aliases from starting to use the version (_check_versions).
        machines_of_arn = StateMachine.objects.filter(project=project, arn=plain)
        machine = machines_of_arn.select_for_update().first()
        if machine is None or not _is_number(number):
            return
        users = [
            alias.name
            for alias in Alias.objects.filter(state_machine=machine).order_by("name")
            if int(number) in [version for version, _ in json.loads(alias.routing)]
        ]
        if users:
            raise ConflictException(
                "Version to be deleted must not be referenced by an alias. Current list of aliases "
                f"referencing this version: [{', '.join(users)}]"
            )
        deleted, _ = Version.objects.filter(state_machine=machine, number=int(number)).delete()
        if deleted:
            audit.record(project, actor, "DeleteStateMachineVersion", arn)

    write(store)


def list_versions(machine: StateMachine, *, before: int = 0, limit: int = 100) -> list[Version]:
    """Return up to ``limit`` versions, newest first; only numbers below ``before`` unless 0."""
    rows = Version.objects.select_related("state_machine").filter(state_machine=machine)
    if before:
        rows = rows.filter(number__lt=before)
    return list(rows.order_by("-number")[:limit])


def version_of_execution(execution: Execution) -> Version | None:
    """Return the version an execution was started with, None for none or a deleted one."""
    number = execution.version_arn.rpartition(":")[2]
    if execution.state_machine_id is None or not _is_number(number):
        return None
    rows = Version.objects.filter(state_machine=execution.state_machine_id, number=int(number))
    return rows.first()


# -- aliases ---------------------------------------------------------------------------------------


def create_alias(
    project: Project,
    name: str,
    routing: Sequence[dict[str, Any]],
    *,
    description: str = "",
    actor: audit.Actor = audit.NOBODY,
) -> Alias:
    """Create an alias, or return the existing one if routing and description are the same.

    Raises ConflictException if an alias of this name differs, ValidationException or
    ResourceNotFound for a bad routing, ServiceQuotaExceededException, StateMachineDeleting.
    """
    machine, pairs = _routing(project, routing)
    arn = f"{machine.arn}:{name}"

    def store() -> Alias:
        _active(machine)
        _check_versions(machine, pairs)
        existing = Alias.objects.filter(arn=arn).first()
        if existing is not None:
            if (json.loads(existing.routing), existing.description) == (pairs, description):
                return existing
            raise ConflictException(
                "Failed to create alias because an alias with the same name and a different "
                "routing configuration already exists."
            )
        if Alias.objects.filter(state_machine=machine).count() >= _MAX_ALIASES:
            raise ServiceError(
                ErrorCode.ServiceQuotaExceededException,
                f"The state machine has {_MAX_ALIASES} aliases, the maximum",
            )
        now_ms = clock.now_ms()
        alias = Alias(
            state_machine=machine,
            name=name,
            arn=arn,
            description=description,
            routing=json.dumps(pairs),
            created_ms=now_ms,
            updated_ms=now_ms,
        )
        alias.save(force_insert=True)
        audit.record(project, actor, "CreateStateMachineAlias", arn)
        return alias

    return write(store)


def _active(machine: StateMachine) -> StateMachine:
    """Return a machine's row, locked; raise if it is deleted or being deleted."""
    row = StateMachine.objects.select_for_update().filter(pk=machine.pk).first()
    if row is None:
        raise StateMachineDoesNotExist(f"State Machine Does Not Exist: '{machine.arn}'")
    if row.status == MachineStatus.DELETING:
        raise ServiceError(
            ErrorCode.StateMachineDeleting, f"State Machine is being deleted: '{machine.arn}'"
        )
    return row


def _routing(project: Project, routing: Sequence[dict[str, Any]]) -> tuple[StateMachine, Routing]:
    """Check a routing configuration; return its machine and [number, weight] pairs."""
    version_arns = [entry["stateMachineVersionArn"] for entry in routing]
    weights = [entry["weight"] for entry in routing]
    reason = _BAD_ROUTING
    received = f"Received: [{', '.join(version_arns)}]"
    if not all(_is_number(arn.rpartition(":")[2]) for arn in version_arns):
        msg = f"Routing configuration must contain state machine version ARNs. {received}"
        raise ValidationException(msg, reason=reason)
    if len(set(version_arns)) != len(version_arns):
        msg = f"Routing configuration must contain distinct state machine version ARNs. {received}"
        raise ValidationException(msg, reason=reason)
    if sum(weights) != 100:  # noqa: PLR2004
        msg = f"Sum of routing configuration weights must equal 100. Received: {weights}"
        raise ValidationException(msg, reason=reason)
    try:
        targets = [resolve_target(project, arn) for arn in version_arns]
    except StateMachineDoesNotExist:
        raise ServiceError(ErrorCode.ResourceNotFound, _NOT_THERE) from None
    if len({target.machine.pk for target in targets}) != 1:
        raise _foreign_versions(version_arns)
    numbers = [target.version.number for target in targets if target.version is not None]
    pairs = [[number, weight] for number, weight in zip(numbers, weights, strict=True)]
    return targets[0].machine, pairs


def _check_versions(machine: StateMachine, pairs: Routing) -> None:
    """Raise ResourceNotFound if a version was deleted since ``_routing``. The machine is locked."""
    numbers = [number for number, _ in pairs]
    versions = Version.objects.filter(state_machine=machine, number__in=numbers)
    if versions.count() != len(numbers):
        raise ServiceError(ErrorCode.ResourceNotFound, _NOT_THERE)


def _foreign_versions(version_arns: Sequence[str]) -> ValidationException:
    return ValidationException(
        "Routing configuration must contain versions of one state machine. "
        f"Received: [{', '.join(version_arns)}]",
        reason=_BAD_ROUTING,
    )


def get_alias(project: Project, arn: str) -> Alias:
    """Return an alias of the project; raise ResourceNotFound."""
    arns.parse_arn(arn, "stateMachine")
    rows = Alias.objects.select_related("state_machine")
    alias = rows.filter(arn=arn, state_machine__project=project).first()
    if alias is None:
        raise ServiceError(ErrorCode.ResourceNotFound, _NOT_THERE)
    return alias


def update_alias(
    project: Project,
    arn: str,
    *,
    routing: Sequence[dict[str, Any]] | None = None,
    description: str | None = None,
    seen_ms: int | None = None,
    actor: audit.Actor = audit.NOBODY,
) -> Alias:
    """Change the routing or the description of an alias, or both.

    Without a difference, neither the alias nor its update date changes. ``seen_ms``: the update
    date that the caller read; None for no check, as in the API. Raises ResourceNotFound,
    ConflictException if the update date is another one, or ValidationException for a bad routing or
    if neither routing nor description is set.
    """
    if routing is None and description is None:
        msg = "Either the description or the routing configuration must be specified"
        raise ValidationException(msg, reason="MISSING_REQUIRED_PARAMETER")
    machine, pairs = (None, None) if routing is None else _routing(project, routing)

    def store() -> Alias:
        # Locked first: else two people who save at once both pass the check of ``seen_ms``.
        _active(get_alias(project, arn).state_machine)
        alias = get_alias(project, arn)
        if routing is not None and machine != alias.state_machine:
            raise _foreign_versions([entry["stateMachineVersionArn"] for entry in routing])
        if seen_ms not in (None, alias.updated_ms):
            raise ConflictException(
                f"Not saved: {alias.name} was changed after you opened this page. The table shows "
                "it as it is now. Save again to replace that with your values."
            )
        before = alias.routing, alias.description
        if pairs is not None:
            _check_versions(alias.state_machine, pairs)
            alias.routing = json.dumps(pairs)
        if description is not None:
            alias.description = description
        if (alias.routing, alias.description) == before:
            return alias
        # a later date for each change, so that ``seen_ms`` tells them apart
        alias.updated_ms = max(clock.now_ms(), alias.updated_ms + 1)
        alias.save()
        audit.record(project, actor, "UpdateStateMachineAlias", arn)
        return alias

    return write(store)


def delete_alias(project: Project, arn: str, actor: audit.Actor = audit.NOBODY) -> None:
    """Delete an alias. Do nothing if the alias is missing.

    Raises ResourceNotFound if its state machine does not exist.
    """
    arns.parse_arn(arn, "stateMachine")
    machine = arn.rpartition(":")[0]

    def store() -> None:
        if not StateMachine.objects.filter(project=project, arn=machine).exists():
            raise ServiceError(ErrorCode.ResourceNotFound, _NOT_THERE)
        deleted, _ = Alias.objects.filter(arn=arn, state_machine__project=project).delete()
        if deleted:
            audit.record(project, actor, "DeleteStateMachineAlias", arn)

    write(store)


def list_aliases(target: Target, *, after: int = 0, limit: int = 100) -> list[Alias]:
    """Return up to ``limit`` aliases of a machine or version, oldest first.

    ``after``: only aliases with a greater primary key.
    """
    rows = Alias.objects.filter(state_machine=target.machine, pk__gt=after).order_by("pk")
    if target.version is None:
        return list(rows[:limit])
    number = target.version.number
    matching = [
        row for row in rows if number in [version for version, _ in json.loads(row.routing)]
    ]
    return matching[:limit]
