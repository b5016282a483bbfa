"""Start an execution: check the request, compute its first step, insert all its rows at once (G1).

The first step may be computed before the transaction (``ahead``). Most executions end, or wait for
something, within a moment, and then need no second transaction and no worker.
"""

from __future__ import annotations

import math
import secrets
import time
import uuid
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from django.db.models.base import ModelState

import engine
from console import access, arns, execution_rights
from console.config import quotas
from console.db import audit, clock, rows, signals
from console.db.writer import Change, immediate, is_embedded
from console.errors import ErrorCode, ServiceError
from console.models import Execution, Project, RunRow, StateMachine, Version
from console.statuses import ExecutionStatus, MachineType
from console.store.events import outbox
from console.store.executions import next_starts, step, step_rows
from console.store.executions.waiting_starts import WAITING_STARTS
from console.store.machines import machines
from console.store.machines.activity_limits import limits_of
from console.store.state import caches, throttle, transition_rate
from console.store.state.caches import Belongs
from console.store.tasks import schedule

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from console.own_api import Parent
    from console.store.machines.activity_limits import Limits

EXPRESS_S = 300
"""AWS: how long an Express execution may run at most."""


@dataclass(frozen=True, slots=True)
class PreparedStart:
    """The first step of an execution that is not stored yet.

    ``limits``: of the machine's activities, if they were read.
    """

    step: engine.Step
    limits: Mapping[str, Limits] | None = None

    @property
    def has_ended(self) -> bool:
        """Return whether the execution has ended in this step."""
        return self.step.run.status != engine.ExecutionStatus.RUNNING

    @property
    def needs_worker(self) -> bool:
        """Return whether a worker continues at once: by a step, or by a call."""
        return bool(self.step.run.ready) or any(
            isinstance(command, engine.RunTask) and command.kind in schedule.CALLED
            for command in self.step.commands
        )


@dataclass(frozen=True, slots=True)
class Replay:
    """The origin and start state of a replay; ``variables``: at the entry of the state, or "".

    ``edited_by``: the last editors of the definition (``Execution.edited_by``).
    """

    origin: str
    state: str
    variables: str
    definition_id: str
    edited_by: str | None = None


_AHEAD_S = 0.02
_AHEAD_STATES = 500
"""Time limit on SQLite, where a start blocks the event loop."""
_AHEAD_ON_THREAD_S = 0.04
"""Time limit on PostgreSQL, where passing the run to a worker costs a commit and 10 ms."""
_LONG = ("JSONata", "..")
"""Parts of a definition that may take a second: expressions, and paths such as ``$..x``."""


# -- the request ----------------------------------------------------------------------------------


def pending_start(
    machine: StateMachine,
    *,
    name: str | None = None,
    input: str = "{}",  # noqa: A002 - AWS's name of the field
    trace_header: str = "",
    test_case: str = "",
    version: Version | None = None,
    alias_arn: str = "",
    sync: bool = False,
    ahead: bool = False,
    timeout_s: int | None = None,
    replay: Replay | None = None,
    parent: Parent | None = None,
    breakpoints: Sequence[engine.Breakpoint] = (),
    faults: engine.FaultPlan | None = None,
    actor: audit.Actor = audit.NOBODY,
) -> Change[Execution]:
    """Check a start and prepare its rows; the start is durable after their commit (G1).

    ``version``: the version to run instead of the current definition; ``alias_arn``: the alias that
    selected it; ``test_case``: of the mock configuration; ``sync``: the caller waits for the end;
    ``ahead``: compute the first step here; ``timeout_s``: replaces the machine's TimeoutSeconds;
    ``replay``: where it begins (``start_replay``); ``parent``: the Task that starts it.

    The same name with the same input while it runs returns the same execution; an Express machine
    starts a new execution each time. Raises InvalidName, InvalidExecutionInput,
    ThrottlingException, StateMachineDeleting, AccessDeniedException, ExecutionAlreadyExists,
    ExecutionLimitExceeded.
    """
    _check_start(machine, name, input, parent)
    is_new = name is None or machine.type == MachineType.EXPRESS
    name = name or str(uuid.uuid4())
    arn = _execution_arn(machine, name)
    execution = _new_execution(machine, name, arn, input, trace_header, actor, test_case)
    _use_version(execution, version, alias_arn)
    _set_origin(execution, replay, parent, faults)
    request = None if replay or breakpoints else (input, execution.faults)  # else always refused
    takes_place = machine.next_starts is not None and not (replay or breakpoints or faults)
    ahead = ahead and not takes_place and not transition_rate.is_limited(machine.project.name, arn)
    prepare = partial(
        prepare_start, execution, machine.name, sync=sync, timeout_s=timeout_s, replay=replay
    )
    prepared = prepare(ahead=ahead, debugging=(breakpoints, faults))
    outbox.has_rules(machine.project_id)  # asked ahead, because a change that asks is not merged

    def store() -> Execution:
        _check_active(machine)
        if not is_new and (existing := _existing_start(arn, request)) is not None:
            return existing
        begun, debugging = prepared, (breakpoints, faults)
        if takes_place and (place := next_starts.take_place(machine, execution)) is not None:
            begun, debugging = prepare(debugging=place), place
        _remember_start(execution, begun, ahead=ahead, called=parent is None)
        insert_execution(execution, machine.name, begun)
        _audit_start(execution, machine, actor, replay, *debugging)
        return execution

    return Change(store, mergeable=not takes_place)


start_execution = immediate(pending_start)
"""Start an execution as ``pending_start`` does; it is durable when this returns."""


def _check_active(machine: StateMachine) -> None:
    if not machines.is_active(machine.pk, machine.as_read):
        raise ServiceError(
            ErrorCode.StateMachineDeleting, f"State Machine is being deleted: '{machine.arn}'"
        )


def _existing_start(arn: str, request: tuple[str, str | None] | None) -> Execution | None:
    """Return the running execution of a name; a merged change assumes that the name is free."""
    return rows.read_or_assume(lambda: _find_same_start(arn, request), assumed=None)


def _find_same_start(arn: str, request: tuple[str, str | None] | None) -> Execution | None:
    """Return the running execution of a name if it was started with the same input and faults.

    None if the name is free; raise ``ExecutionAlreadyExists`` if they differ or it has ended.
    """
    existing = rows.fetch_one(Execution, "arn = %s", [arn])
    if existing is None:
        return None
    # The faults of a place among its machine's next starts were not requested.
    requested = existing.input, None if existing.next_starts else existing.faults
    if existing.status == ExecutionStatus.RUNNING and requested == request:
        return existing
    raise ServiceError(ErrorCode.ExecutionAlreadyExists, f"Execution Already Exists: '{arn}'")


def _execution_arn(machine: StateMachine, name: str) -> str:
    if machine.type == MachineType.EXPRESS:
        return arns.express_arn(machine.arn, name, str(uuid.uuid4()))
    return arns.execution_arn(machine.arn, name)


def _audit_start(
    execution: Execution,
    machine: StateMachine,
    actor: audit.Actor,
    replay: Replay | None,
    breakpoints: Sequence[engine.Breakpoint],
    faults: engine.FaultPlan | None,
) -> None:
    """Write the audit entry of a start, with its origin or its breakpoints and faults."""
    if not actor.name:
        return
    reasons = []
    if faults:
        described = "; ".join(engine.describe_faults(faults.faults))
        reasons.append(f"faults (seed {faults.seed}): {described}")
    if breakpoints:
        names = ", ".join(f"{place.state} {place.when}" for place in breakpoints)
        reasons.append(f"breakpoints: {names}")
    if replay and not reasons:
        reasons.append(f"replay of {replay.origin} from {replay.state}")
    reason = "; ".join(reasons)
    if execution.next_starts:
        reason = next_starts.reason_of(execution, reason)
    audit.record(machine.project, actor, "StartExecution", execution.arn, reason)


def _check_start(machine: StateMachine, name: str | None, text: str, parent: Parent | None) -> None:
    if machine.project.archived_ms is not None:
        access.check_not_archived(machine.project)
    _check_input(text)
    if name is not None:
        arns.check_name(name)
    _check_quotas(machine, parent)


def _check_quotas(machine: StateMachine, parent: Parent | None) -> None:
    limits = quotas.quotas_of(machine.project.name)
    if parent is not None and parent.depth >= limits.nesting_depth:
        raise ServiceError(
            ErrorCode.ExecutionLimitExceeded,
            f"The new execution would have {parent.depth + 1} executions above it, more than the "
            f"quota nesting_depth of {limits.nesting_depth}",
        )
    if limits.start_execution is not None:
        throttle.start_allowed(machine.project, limits.start_execution, machine.arn)
    if limits.open_executions is not None:
        check_open(machine.project, limits.open_executions)


def _check_input(text: str) -> None:
    if engine.is_too_long(text):
        limit = engine.payload_limit()
        msg = f"Invalid State Machine Execution Input: 'got more than {limit.most} {limit.unit}'"
        raise ServiceError(ErrorCode.InvalidExecutionInput, msg)
    if not text.strip():
        msg = "Invalid State Machine Execution Input: 'Invalid execution input.'"
        raise ServiceError(ErrorCode.InvalidExecutionInput, msg)
    try:
        engine.loads(text)
    except engine.JsonTextError as error:
        raise ServiceError(
            ErrorCode.InvalidExecutionInput, f"Invalid State Machine Execution Input: '{error}'"
        ) from None


def _new_execution(
    machine: StateMachine,
    name: str,
    arn: str,
    text: str,
    trace_header: str,
    actor: audit.Actor,
    test_case: str,
) -> Execution:
    values = {
        "project_id": machine.project_id,
        "state_machine_id": machine.pk,
        "state_machine_arn": machine.arn,
        "arn": arn,
        "name": name,
        "role_arn": machine.role_arn,
        "definition_id": machine.definition_id,
        "revision_id": machine.revision_id,
        "machine_updated_ms": machine.updated_ms,
        "input": text,
        "test_case": test_case,
        "start_ms": clock.now_ms(),
        "started_by": actor.name,
        "trace_header": trace_header,
        "edited_by": machine.edited_by,
        "acting_for": execution_rights.names_as_text(actor.acting_for or (actor.name,)),
    }
    # as Execution(**values) does, which takes four times as long
    execution = Execution.__new__(Execution)
    execution._state = ModelState()  # noqa: SLF001 - documented in spite of its name
    execution.__dict__.update(_defaults() | values)
    return execution


@cache
def _defaults() -> dict[str, Any]:
    """Return the default of each field of an execution."""
    fields = Execution._meta.concrete_fields  # noqa: SLF001 - as above
    return {field.attname: field.get_default() for field in fields}


def _set_origin(
    execution: Execution,
    replay: Replay | None,
    parent: Parent | None,
    faults: engine.FaultPlan | None,
) -> None:
    """Note the replayed execution, or the parent execution and its Task, and injected faults."""
    execution.faults = engine.faults_text(faults) if faults else None
    if replay is not None:
        execution.definition_id, execution.edited_by = replay.definition_id, replay.edited_by
    if parent is not None:
        execution.parent, execution.parent_task = parent.execution_id, parent.task
        execution.depth = parent.depth + 1


def _use_version(execution: Execution, version: Version | None, alias_arn: str) -> None:
    """Use the definition of a published version, if the request has one."""
    if version is None:
        return
    execution.definition_id = version.definition_id
    execution.role_arn = version.role_arn
    execution.revision_id = version.revision_id
    execution.edited_by = version.edited_by
    execution.version_arn = version.arn
    execution.alias_arn = alias_arn


# -- open executions -------------------------------------------------------------------------------

_COUNTED_S = 10.0
_REFUSED_S = 0.25
_SHARE = 8  # of the room that is left, what one process uses before it counts again
_FEW = 1_000  # this many are counted in less than a millisecond
_OPEN = (
    "SELECT COUNT(*) FROM (SELECT 1 FROM console_execution"
    " WHERE project_id = %s AND status = 'RUNNING' AND map_run_id IS NULL"
    " AND imported_ms IS NULL LIMIT %s) AS running"
)


@dataclass(slots=True)
class _Room:
    """This process's view of a project's free executions.

    ``until``: its expiry. ``free``: starts until the next count; ``full``: none are free.
    """

    until: float
    free: int
    full: bool = False


_rooms: dict[tuple[int, int], _Room] = {}


def check_open(project: Project, most: int) -> None:
    """Raise ``ExecutionLimitExceeded`` if the maximum number of executions runs.

    Executions are counted (up to the limit) every ten seconds, or earlier once this process has
    started its share of the number that remained. So a start far below the limit costs no query,
    and concurrent processes may exceed the limit slightly. If counting is slow, a refusal holds for
    a quarter of a second.
    """
    now = time.monotonic()
    key = (project.pk, most)
    room = _rooms.get(key)
    if room is None or room.until <= now or (room.free <= 0 and not room.full):
        room = _rooms[key] = _count_open(project.pk, most, now)
    if room.full:
        raise ServiceError(
            ErrorCode.ExecutionLimitExceeded,
            f"The maximum number of open executions is reached: {most}",
        )
    room.free -= 1


def _count_open(project_id: int, most: int, now: float) -> _Room:
    (running,) = rows.fetch_row(_OPEN, [project_id, most])
    free = most - running
    if free > 0:
        return _Room(now + _COUNTED_S, max(free // _SHARE, 1))
    return _Room(now + (_REFUSED_S if most > _FEW else 0), 0, full=True)


# -- the first step and the rows -------------------------------------------------------------------


def prepare_start(
    execution: Execution,
    machine_name: str,
    *,
    sync: bool = False,
    ahead: bool = False,
    ahead_s: float = math.inf,
    timeout_s: int | None = None,
    replay: Replay | None = None,
    debugging: tuple[Sequence[engine.Breakpoint], engine.FaultPlan | None] = ((), None),
) -> PreparedStart:
    """Create event 1 and, with ``ahead``, run for a moment; outside any transaction.

    ``sync``: it is started by StartSyncExecution; ``ahead_s``: its time limit, in seconds;
    ``timeout_s``: its limit, instead of the machine's; ``replay``: where it begins instead of at
    the start; ``debugging``: breakpoints and injected faults. JSONata, and paths that search a
    whole value, may take a second, so they are left to the worker.
    """
    breakpoints, faults = debugging
    machine = machines.compiled_machines.get(execution.definition_id)
    if arns.is_express(execution.arn):
        timeout_s = min(timeout_s or machine.timeout_seconds or EXPRESS_S, EXPRESS_S)
    message = engine.Start(
        execution_arn=execution.arn,
        execution_name=execution.name,
        state_machine_arn=execution.state_machine_arn,
        state_machine_name=machine_name,
        role_arn=execution.role_arn,
        input=execution.input,
        start_ms=execution.start_ms,
        version_arn=execution.version_arn or None,
        alias_arn=execution.alias_arn or None,
        timeout_seconds=timeout_s,
        redrive_count_known=not sync,
        start_at=replay.state if replay else None,
        variables=(replay.variables if replay else "") or None,
        origin=replay.origin if replay else None,
    )
    new = engine.NEW_RUN if faults is None else engine.NEW_RUN.with_faults(faults)
    if breakpoints:
        new = new.with_plan(engine.DebugPlan.of(breakpoints))
    elif faults is None and ahead and may_run_ahead(machine):
        limits = limits_of(execution.arn, machine.activities)
        first_step = _advance_ahead(machine, message, limits, ahead_s)
        if first_step is not None:
            return PreparedStart(first_step, limits)
    moment = engine.Moment(execution.start_ms, secrets.randbits(63))
    return PreparedStart(engine.advance(machine, new, message, moment, budget=0))


def may_run_ahead(machine: engine.Machine) -> bool:
    """Return whether every state of a machine takes only a moment."""
    return not any(word in machine.text for word in _LONG)


def ahead_seconds() -> float:
    """Return the time limit of a step in the process that got its message."""
    return _AHEAD_S if is_embedded() else _AHEAD_ON_THREAD_S


def _advance_ahead(
    machine: engine.Machine,
    message: engine.Start,
    activities: Mapping[str, Limits],
    most_s: float,
) -> engine.Step | None:
    """Run the start for a moment; None after an exception, which a worker will meet again."""
    states = min(_AHEAD_STATES, step.most_states()) if is_embedded() else step.most_states()
    until = time.monotonic() + min(ahead_seconds(), most_s)
    try:
        return engine.advance(
            machine,
            engine.NEW_RUN,
            message,
            step.current_moment(machine, message.execution_arn, message.start_ms, activities),
            budget=states,
            enough=lambda: time.monotonic() > until,
        )
    except Exception:  # noqa: BLE001 - it fails again where failures are counted
        return None


def insert_execution(
    execution: Execution, machine_name: str, prepared: PreparedStart | None = None
) -> None:
    """Save a new execution with its first events, its snapshot and its first work item.

    An execution that ends in its first step is inserted with its final status. For an update,
    PostgreSQL would write a second version of the row, with an entry in each index.
    """
    prepared = prepared or prepare_start(execution, machine_name)
    first_step = prepared.step
    run, issued = first_step.run, first_step.commands
    # without other commands it has no task, timer or message
    finish = issued[0] if len(issued) == 1 and isinstance(issued[0], engine.Finish) else None
    rows.insert(execution, **(step_rows.end_columns(finish) if finish else {}))
    fields = {
        "execution_id": execution.pk,
        "snapshot": step_rows.snapshot_text(run),
        "next_event": run.next_event,
        "ready": bool(run.ready),
    }
    rows.insert_rows(RunRow, [fields])
    outbox.put_status_change(execution)
    step_rows.append_events(execution.pk, first_step.events)
    step_rows.append_values(execution.pk, first_step.values)
    belongs = Belongs(
        execution.map_run_id, execution.project_id, execution.parent, execution.parent_task
    )
    if finish is not None:
        step_rows.publish_end(execution.pk, execution.arn, finish, belongs)
    else:
        step_rows.apply_commands(
            execution.pk, execution.arn, issued, belongs, limits=prepared.limits
        )
    if run.ready:
        signals.publish_created(execution.pk)


def _remember_start(
    execution: Execution, prepared: PreparedStart, *, ahead: bool, called: bool
) -> None:
    """Cache a committed start in this process. ``called``: by a caller."""
    if ahead:
        signals.after_commit(lambda: cache_run(execution, prepared))
    if called and WAITING_STARTS.is_known and prepared.needs_worker:
        signals.after_commit(lambda: WAITING_STARTS.add(execution.pk))


def cache_run(execution: Execution, prepared: PreparedStart) -> None:
    """Cache the run of a committed execution for its next step."""
    caches.kept_runs.put(execution.pk, 0, prepared.step.run)
