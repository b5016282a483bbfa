"""How are executions started, stopped and found?"""

from __future__ import annotations

import time
import uuid
from typing import TYPE_CHECKING, Any

from django.db import transaction
from django.db.models import Q

import engine
from console import arns, clock, execution_rights, quotas
from console.errors import ErrorCode, ServiceError
from console.models import Alias, Execution, MapRun, StateMachine, Version
from console.statuses import ExecutionStatus, MachineType
from console.store.db import audit, rows
from console.store.db.pending import Pending, immediate
from console.store.db.writer import is_outage, write
from console.store.executions import engine_failures, step
from console.store.executions.insert import (
    Parent,
    Replay,
    insert_execution,
    prepare_start,
    remember,
)
from console.store.machines import machines
from console.store.state import inbox, throttle, transition_rate
from console.store.tasks import schedule

if TYPE_CHECKING:
    from console.models import Project

_STOP_TRIES = 200


def starting(
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
    actor: audit.Actor = audit.NOBODY,
) -> Pending[Execution]:
    """Check a start and make ready what is to be written; it is durable once that is (G1).

    ``version``: the version to run instead of what the machine is now; ``alias_arn``: how it was
    reached; ``test_case``: of the mock configuration; ``sync``: the caller waits for its end;
    ``ahead``: take it its first step at once instead of leaving it to a worker; ``timeout_s``: how
    long it may run, instead of the machine's TimeoutSeconds; ``replay``: it begins in a state of
    another one (``replays.start``); ``parent``: whose Task starts it.

    The same name with the same input while it runs returns the same execution, but of an Express
    machine, where each start is one of its own. Raises InvalidName,
    InvalidExecutionInput, ExecutionAlreadyExists, StateMachineDeleting, and by the project's quotas
    ThrottlingException, ExecutionLimitExceeded.
    """
    _check_input(input)
    if name is not None:
        arns.check_name(name)
    _check_quotas(machine, parent)
    named = name is not None and machine.type != MachineType.EXPRESS  # else it is new
    name = name or str(uuid.uuid4())
    arn = _arn(machine, name)
    wanted = _new(machine, name, arn, input, trace_header, actor)
    wanted.test_case = test_case
    if version is not None:
        _use_version(wanted, version, alias_arn)
    if replay is not None:
        wanted.definition_id, wanted.edited_by = replay.definition_id, replay.edited_by
    if parent is not None:
        wanted.parent, wanted.parent_task = parent.execution_id, parent.task
        wanted.depth = parent.depth + 1
    ahead = ahead and not transition_rate.is_limited(machine.project.name, arn)
    birth = prepare_start(
        wanted, machine.name, sync=sync, ahead=ahead, timeout_s=timeout_s, replay=replay
    )

    def store() -> Execution:
        if not machines.is_active(machine.pk):
            raise ServiceError(
                ErrorCode.StateMachineDeleting, f"State Machine is being deleted: '{machine.arn}'"
            )
        found = _same_start(arn, None if replay else input) if named else None
        if found is not None:
            return found
        if ahead:
            transaction.on_commit(lambda: remember(wanted, birth), robust=True)
        insert_execution(wanted, machine.name, birth)
        if actor.name:
            audit.record(machine.project, actor, "StartExecution", arn, _told(replay))
        return wanted

    return Pending(store)


start = immediate(starting)
"""Start an execution as ``starting`` does; it is durable when this returns."""


def _same_start(arn: str, text: str | None) -> Execution | None:
    """Return the running execution of a name if it was started with the same input.

    None if the name is free; raise ``ExecutionAlreadyExists`` if it is another one's.
    """
    found = rows.fetch_one(Execution, "arn = %s", [arn])
    if found is None or (found.status == ExecutionStatus.RUNNING and found.input == text):
        return found
    raise ServiceError(ErrorCode.ExecutionAlreadyExists, f"Execution Already Exists: '{arn}'")


def _arn(machine: StateMachine, name: str) -> str:
    if machine.type == MachineType.EXPRESS:
        return arns.express_arn(machine.arn, name, str(uuid.uuid4()))
    return arns.execution_arn(machine.arn, name)


def _told(replay: Replay | None) -> str:
    """Return what the audit says beside the start."""
    return f"replay of {replay.origin} from {replay.state}" if replay else ""


def _check_quotas(machine: StateMachine, parent: Parent | None) -> None:
    limits = quotas.quotas_of(machine.project.name)
    if parent is not None and parent.depth >= limits.nesting_depth:
        raise ServiceError(
            ErrorCode.ExecutionLimitExceeded,
            f"Nesting depth: got {parent.depth + 1} executions above the new one, wanted at most "
            f"{limits.nesting_depth} (the quota nesting_depth)",
        )
    if limits.start_execution is not None:
        throttle.start_allowed(machine.project, limits.start_execution, machine.arn)
    if limits.open_executions is not None:
        throttle.check_open(machine.project, limits.open_executions)


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


def _new(
    machine: StateMachine, name: str, arn: str, text: str, trace_header: str, actor: audit.Actor
) -> Execution:
    return Execution(
        project_id=machine.project_id,
        state_machine_id=machine.pk,
        state_machine_arn=machine.arn,
        arn=arn,
        name=name,
        role_arn=machine.role_arn,
        definition_id=machine.definition_id,
        revision_id=machine.revision_id,
        machine_updated_ms=machine.updated_ms,
        input=text,
        start_ms=clock.now_ms(),
        started_by=actor.name,
        trace_header=trace_header,
        edited_by=machine.edited_by,
        acting_for=execution_rights.names_as_text(actor.people),
    )


def _use_version(execution: Execution, version: Version, alias_arn: str) -> None:
    """Let a new execution run the text of a published version."""
    execution.definition_id = version.definition_id
    execution.role_arn = version.role_arn
    execution.revision_id = version.revision_id
    execution.edited_by = version.edited_by
    execution.version_arn = version.arn
    execution.alias_arn = alias_arn


# -- stopping --------------------------------------------------------------------------------------


def stop(
    execution: Execution,
    *,
    error: str | None = None,
    cause: str | None = None,
    actor: audit.Actor = audit.NOBODY,
) -> int:
    """Stop an execution and return its stop date (epoch ms); stopping an ended one changes nothing.

    Returns after the end is committed, whoever won the race (G11).
    """

    def ask() -> None:
        if _post_stop(execution.pk, engine.Stop(error, cause)):
            audit.record(execution.project, actor, "StopExecution", execution.arn, cause or "")

    write(ask)
    return _drive_to_end(execution.pk)


def _post_stop(number: int, message: engine.Stop) -> bool:
    """Tell an execution to stop unless it has ended; return whether it had not.

    The lock lets its end, if that is being written just now, come before or after but not between.
    Its tasks are closed first: nobody may be told that an outcome counts which comes after Stop.
    """
    execution = Execution.objects.select_for_update(no_key=True).filter(pk=number)
    running = execution.values_list("status", flat=True).first() == ExecutionStatus.RUNNING
    if running:
        schedule.close_all(number, clock.now_ms())
        inbox.post(number, message)
    return running


def _drive_to_end(number: int) -> int:
    """Step until the execution has ended; other threads may be doing the same."""
    for attempt in range(_STOP_TRIES):
        stop_ms = Execution.objects.filter(pk=number).values_list("stop_ms", flat=True).first()
        if stop_ms is not None:
            return stop_ms
        try:
            step.step(number)
        except (step.Fenced, engine.NewerFormat):  # somebody else does it
            time.sleep(min(0.001 * attempt, 0.05))
        except Exception as error:
            if is_outage(error):
                raise
            engine_failures.note(number, error)
    msg = f"execution {number} did not take its Stop message in {_STOP_TRIES} tries"
    raise engine.EngineBug(msg)


# -- finding ---------------------------------------------------------------------------------------


def get_execution(project: Project, arn: str) -> Execution:
    """Return an execution of the project; raise InvalidArn or ExecutionDoesNotExist."""
    parsed = arns.parse_arn(arn, "execution")
    execution = rows.fetch_one(Execution, "arn = %s AND project_id = %s", [parsed.text, project.pk])
    if execution is None:
        raise ServiceError(ErrorCode.ExecutionDoesNotExist, f"Execution Does Not Exist: '{arn}'")
    execution.project = project
    if execution.map_run_id is not None:
        execution.map_run = MapRun.objects.get(pk=execution.map_run_id)
    return execution


def with_project(number: int) -> Execution:
    """Return an execution by its number, with its project and without its payloads."""
    rows = Execution.objects.select_related("project").defer("input", "output", "cause")
    return rows.get(pk=number)


def list_page(
    owner: StateMachine | Version | Alias | MapRun,
    *,
    status: str | None = None,
    redriven: bool | None = None,
    after: tuple[int, int] | None = None,
    limit: int = 100,
) -> list[Execution]:
    """Return up to ``limit`` executions of a machine or Map Run, newest first, without payloads.

    ``after``: (start_ms, id) of the last row of the page before.
    """
    which: dict[type, dict[str, Any]] = {
        MapRun: {"map_run": owner},
        Version: {"version_arn": owner.arn},
        Alias: {"alias_arn": owner.arn},
        StateMachine: {"state_machine": owner},
    }
    found = Execution.objects.filter(**which[type(owner)])
    if status:
        found = found.filter(status=status)
    if redriven is not None:
        found = found.filter(redrive_count__gt=0) if redriven else found.filter(redrive_count=0)
    if after:
        start_ms, number = after
        found = found.filter(Q(start_ms__lt=start_ms) | Q(start_ms=start_ms, id__lt=number))
    return list(
        found.select_related("map_run")
        .defer("input", "output", "cause")
        .order_by("-start_ms", "-id")[:limit]
    )
