"""Create, update, delete and find state machines, with AWS's rules of idempotence."""

from __future__ import annotations

import contextlib
import hashlib
import threading
import time
import uuid
from collections import OrderedDict
from functools import partial
from typing import TYPE_CHECKING, Any

from django.db.models import Exists, OuterRef, Q

import engine
from console import arns, execution_rights
from console.config import quotas
from console.db import audit, clock, project_settings, rows
from console.db.rows import Statement
from console.db.writer import is_embedded, write
from console.errors import (
    ConflictException,
    ErrorCode,
    InvalidDefinition,
    ServiceError,
    StateMachineDoesNotExist,
)
from console.models import Definition, Execution, StateMachine, Tag
from console.statuses import ExecutionStatus, MachineStatus, MachineType
from console.store.machines import log_groups, revisions
from console.store.machines.tags import put_tags
from console.store.state import pause

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from console.models import Project

_ACTIVE = Statement(
    10,
    "",
    ("bigint", "text"),
    key=(0, 1),
    merged="SELECT m.id, g.c1 FROM console_statemachine m JOIN {given} ON m.id = g.c0"
    f" WHERE m.status = '{MachineStatus.ACTIVE}' AND (g.c1 = '' OR m.xmin::text = g.c1)"
    " FOR KEY SHARE OF m",
)
"""The statement of ``is_active``, for many starts at once."""
_AS_IT_IS = "SELECT xmin::text FROM console_statemachine WHERE arn = %s AND project_id = %s"
_KEPT_S = 1.0
_MOST_KEPT = 200
_kept: OrderedDict[tuple[int, str], tuple[float, StateMachine]] = OrderedDict()
MISSING = (
    "Either the definition, the role ARN, the LoggingConfiguration, or the TracingConfiguration "
    "must be specified"
)


def create_machine(
    project: Project,
    region: str,
    *,
    name: str,
    definition: str,
    role_arn: str,
    type: str = MachineType.STANDARD,  # noqa: A002 - AWS's name of the field
    logging: str = "",
    tracing: str = "",
    encryption: str = "",
    tags: Mapping[str, str] | None = None,
    note: str = "",
    then: Callable[[StateMachine], object] | None = None,
    actor: audit.Actor = audit.NOBODY,
) -> StateMachine:
    """Create a state machine, or return the existing one with the same attributes.

    ``tags`` and ``note`` are for a new machine; an existing one keeps its tags. ``then``: called
    with the state machine in the same transaction.

    Raises InvalidName, InvalidArn (role), InvalidDefinition, StateMachineAlreadyExists,
    StateMachineDeleting, StateMachineLimitExceeded.
    """
    arns.check_name(name)
    arns.check_role(role_arn)
    arn = arns.state_machine_arn(region, project.account_id, name)
    check_definition(definition, type)
    attributes = (type, logging, tracing, encryption, sha256_of(definition))

    def find_or_create() -> StateMachine:
        existing = StateMachine.objects.select_related("definition").filter(arn=arn).first()
        if existing is not None:
            return same_or_refused(existing, attributes)
        _check_limit(project, region)
        now_ms = clock.now_ms()
        machine = StateMachine.objects.create(
            project=project,
            region=region,
            name=name,
            arn=arn,
            type=type,
            role_arn=role_arn,
            definition=keep_definition(definition),
            logging=logging,
            tracing=tracing,
            encryption=encryption,
            created_ms=now_ms,
            updated_ms=now_ms,
            edited_by=execution_rights.names_behind(actor),
        )
        revisions.add_revision(machine, actor, note)
        log_groups.route_logs(machine, now_ms)
        put_tags(arn, tags or {})
        audit.record(project, actor, "CreateStateMachine", arn)
        return machine

    return write(lambda: _then(find_or_create(), then))


def _then(machine: StateMachine, change: Callable[[StateMachine], object] | None) -> StateMachine:
    """Return a state machine after a further change in the same transaction."""
    if change is not None:
        change(machine)
    return machine


def _check_limit(project: Project, region: str) -> None:
    """Raise StateMachineLimitExceeded if the project may have no further state machine."""
    limit = quotas.quotas_of(project.name).state_machines
    if StateMachine.objects.filter(project=project, region=region).count() >= limit:
        msg = f"State Machine Limit Exceeded: '{limit}'"
        raise ServiceError(ErrorCode.StateMachineLimitExceeded, msg)


def same_or_refused(machine: StateMachine, attributes: tuple[str, ...]) -> StateMachine:
    """Return the machine of a repeated create; raise unless all attributes are the same.

    ``attributes``: type, logging, tracing, encryption and the hash of the definition.
    """
    if machine.status == MachineStatus.DELETING:
        raise ServiceError(
            ErrorCode.StateMachineDeleting, f"State Machine is being deleted: '{machine.arn}'"
        )
    current = (
        machine.type,
        machine.logging,
        machine.tracing,
        machine.encryption,
        machine.definition_id,
    )
    if current != attributes:
        raise already_exists(machine.arn)
    return machine


def already_exists(arn: str) -> ServiceError:
    """Return the error for a name already taken by a different machine."""
    return ServiceError(
        ErrorCode.StateMachineAlreadyExists, f"State Machine Already Exists: '{arn}'"
    )


def update_machine(
    machine: StateMachine,
    *,
    definition: str | None = None,
    role_arn: str | None = None,
    logging: str | None = None,
    tracing: str | None = None,
    encryption: str | None = None,
    revision: str | None = None,
    note: str = "",
    then: Callable[[StateMachine], object] | None = None,
    actor: audit.Actor = audit.NOBODY,
) -> StateMachine:
    """Change the given attributes; running executions keep the earlier definition and settings.

    The revision id changes when something did; a new definition or role is kept as a revision, with
    ``note``. ``revision``: the result of ``revision_of`` for the state machine on which the change
    is based; None for no check, as in the API. ``then``: called with the changed state machine in
    the same transaction. Raises ConflictException,
    MissingRequiredParameter if nothing is given, InvalidDefinition, InvalidArn (role),
    StateMachineDeleting, StateMachineDoesNotExist.
    """
    if {definition, role_arn, logging, tracing, encryption} == {None}:
        raise ServiceError(ErrorCode.MissingRequiredParameter, MISSING)
    # A definition that is there already may break a rule that came after it. It runs on, so it must
    # not stand in the way of a change of the role or the log group.
    if definition is not None and sha256_of(definition) != machine.definition_id:
        check_definition(definition, machine.type)
    if role_arn is not None:
        arns.check_role(role_arn)
    fields: dict[str, Any] = {
        "role_arn": role_arn,
        "logging": logging,
        "tracing": tracing,
        "encryption": encryption,
        "definition_id": None if definition is None else sha256_of(definition),
    }

    def store() -> StateMachine:
        row = _current(machine)
        if revision is not None and revision != revision_of(row):
            raise ConflictException(f"State Machine Was Changed Since: '{row.arn}'")
        _save_changes(row, fields, definition, note, actor)
        audit.record(row.project, actor, "UpdateStateMachine", row.arn)
        return _then(row, then)

    return write(store)


def _save_changes(
    row: StateMachine,
    fields: Mapping[str, Any],
    definition: str | None,
    note: str,
    actor: audit.Actor,
) -> None:
    """Store the changed fields, and the revision created by the change."""
    changed = {
        name: value
        for name, value in fields.items()
        if value is not None and value != getattr(row, name)
    }
    in_revisions = not changed.keys().isdisjoint(revisions.KEPT)
    if in_revisions:
        revisions.add_first_revision(row)
    if definition is not None:
        keep_definition(definition)
        row.edited_by = execution_rights.names_behind(actor)
    row.updated_ms = clock.now_ms()
    if changed:
        row.revision_id = str(uuid.uuid4())
    for name, value in changed.items():
        setattr(row, name, value)
    row.save()
    if in_revisions:
        revisions.add_revision(row, actor, note)
    if "logging" in changed:
        log_groups.route_logs(row, row.updated_ms)


def revision_of(machine: StateMachine) -> str:
    """Return a key of the machine's current state, unique also among deleted namesakes.

    A machine has no revision id before its first change, so the id alone would not distinguish it
    from a deleted and recreated machine.
    """
    return f"{machine.pk}.{machine.revision_id}"


def _current(machine: StateMachine) -> StateMachine:
    # On PostgreSQL two updates would both read the same row without the lock:
    # 1. A reads revision r1.  2. B reads r1.  3. A writes r2.  4. B writes r3 over it, unseen.
    row = StateMachine.objects.select_for_update().filter(pk=machine.pk).first()
    if row is None:
        raise _missing(machine.arn)
    if row.status == MachineStatus.DELETING:
        raise ServiceError(
            ErrorCode.StateMachineDeleting, f"State Machine is being deleted: '{row.arn}'"
        )
    return row


def delete_machine(project: Project, arn: str, actor: audit.Actor = audit.NOBODY) -> None:
    """Mark a machine as DELETING; deleting a missing one succeeds.

    Each running execution ends at its next transition, as ABORTED. The machine is removed, and its
    name becomes free, when no execution is running: at once, or later by ``finish_deletions``.
    Ended executions stay readable. Raises InvalidArn.

    Source: API reference, DeleteStateMachine.
    """
    arns.parse_arn(arn, "stateMachine")

    def mark() -> None:
        machines = StateMachine.objects.filter(project=project, arn=arn)
        # waits for starts in progress, which then count as running; later starts see the status
        if list(machines.exclude(status=MachineStatus.DELETING).select_for_update()):
            machines.update(status=MachineStatus.DELETING)
            pause.release_pauses(Execution.objects.filter(state_machine__arn=arn))
            audit.record(project, actor, "DeleteStateMachine", arn)

    write(mark)
    write(lambda: _remove(arn))


def finish_deletions() -> None:
    """Remove the DELETING machines without running executions."""
    running = Execution.objects.filter(state_machine=OuterRef("pk"), status=ExecutionStatus.RUNNING)
    machines = StateMachine.objects.filter(~Exists(running), status=MachineStatus.DELETING)
    for arn in machines.values_list("arn", flat=True):
        write(partial(_remove, arn))


def _remove(arn: str) -> None:
    """Remove a DELETING machine with versions, aliases and tags, unless an execution runs.

    Nothing starts or is redriven meanwhile: a start holds the machine's row until it is committed,
    and one that comes later finds the mark.
    """
    machine = (
        StateMachine.objects.select_for_update()
        .filter(arn=arn, status=MachineStatus.DELETING)
        .first()
    )
    if machine is None or machine.execution_set.filter(status=ExecutionStatus.RUNNING).exists():
        return
    machine.delete()
    Tag.objects.filter(arn=arn).delete()
    # Settings have the name only, which a state machine of another region may have, too.
    if not StateMachine.objects.filter(project=machine.project_id, name=machine.name).exists():
        project_settings.remove_settings_of_machine(machine.project, machine.name)


def get_machine(project: Project, arn: str) -> StateMachine:
    """Return a machine of the project; raise InvalidArn or StateMachineDoesNotExist."""
    parsed = arns.parse_arn(arn, "stateMachine")
    machine = rows.fetch_one(
        StateMachine, "arn = %s AND project_id = %s", [parsed.text, project.pk]
    )
    if machine is None:
        raise _missing(arn)
    machine.project = project
    return machine


class Outdated(Exception):
    """A machine has changed since it was read."""


def kept_machine(project: Project, arn: str) -> StateMachine:
    """Return a machine like ``get_machine``, perhaps from a short-lived cache (PostgreSQL).

    The caller checks in its transaction that the machine is unchanged: ``is_active``.
    """
    key = (project.pk, arn)
    until, machine = _kept.get(key, (0.0, None))
    if machine is not None and time.monotonic() < until:
        return machine
    with rows.open_cursor() as cursor:
        cursor.execute(_AS_IT_IS, key[::-1])
        row = cursor.fetchone()
    machine = get_machine(project, arn)  # after its mark, so that the mark is no newer than it
    if row is not None:
        machine.as_read = row[0]
        _kept[key] = (time.monotonic() + _KEPT_S, machine)
        while len(_kept) > _MOST_KEPT:
            with contextlib.suppress(KeyError):  # another thread was first
                _kept.popitem(last=False)
    return machine


def is_active(machine: int, as_read: str = "") -> bool:
    """Return whether a machine exists and is not DELETING, for the rest of the transaction.

    ``as_read``: the same attribute of a ``kept_machine``; raise ``Outdated`` if it has changed
    since.
    """
    return rows.require(_ACTIVE, (machine, as_read), lambda: _read_active(machine, as_read))


def _read_active(machine: int, as_read: str) -> bool:
    columns = "status, xmin::text" if as_read else "status, ''"
    with rows.open_cursor() as cursor:
        text = f"SELECT {columns} FROM console_statemachine WHERE id = %s"
        cursor.execute(lock_clause(text), [machine])
        row = cursor.fetchone()
    if as_read and (row is None or row[1] != as_read):
        raise Outdated
    return row is not None and row[0] == MachineStatus.ACTIVE


def lock_clause(where: str) -> str:
    """Return SQL that locks a row against deletion until the end of the transaction.

    (It is the same lock that the insertion of a referring row takes. SQLite has one writer at a
    time.)
    """
    return where if is_embedded() else f"{where} FOR KEY SHARE"


def list_page(
    project: Project, region: str, *, after: str = "", limit: int = 100
) -> list[StateMachine]:
    """Return up to ``limit`` machines by name, after the name ``after``."""
    machines = StateMachine.objects.filter(project=project, region=region)
    return list(machines.filter(Q(name__gt=after)).order_by("name")[:limit])


def check_definition(definition: str, type: str = MachineType.STANDARD) -> None:  # noqa: A002
    """Raise ``InvalidDefinition`` in AWS's words if the definition has errors."""
    try:
        engine.parse(definition, type)
    except engine.DefinitionError as error:
        problems = ", ".join(str(diagnostic) for diagnostic in error.diagnostics)
        msg = f"Invalid State Machine Definition: '{problems}'"
        raise InvalidDefinition(msg, tuple(error.diagnostics)) from None


def _missing(arn: str) -> StateMachineDoesNotExist:
    return StateMachineDoesNotExist(f"State Machine Does Not Exist: '{arn}'")


# -- definitions -----------------------------------------------------------------------------------


def keep_definition(text: str) -> Definition:
    """Return the row of a definition, created if new (inside the caller's transaction)."""
    row, _ = Definition.objects.get_or_create(sha256=sha256_of(text), defaults={"text": text})
    return row


def sha256_of(text: str) -> str:
    """Return the SHA-256 of a definition's text, its key."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class CompiledMachines:
    """A cache of compiled machines, by the key of their immutable definition."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._machines: OrderedDict[str, engine.Machine] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, sha256: str) -> engine.Machine:
        """Return the machine of a stored definition."""
        machine = self._machines.get(sha256)
        if machine is None:
            with rows.open_cursor() as cursor:
                cursor.execute("SELECT text FROM console_definition WHERE sha256 = %s", [sha256])
                machine = engine.parse_stored(cursor.fetchone()[0])
            with self._lock:
                self._machines[sha256] = machine
                while len(self._machines) > self._size:
                    self._machines.popitem(last=False)
        return machine


compiled_machines = CompiledMachines(1_000)
