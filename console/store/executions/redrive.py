"""Redrive an execution that failed, timed out or was aborted, if it is eligible.

Source: "Restarting state machine executions with redrive". The reasons of a refusal are in AWS's
words.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db.models import BooleanField, Count, ExpressionWrapper, Q

import engine
from console import arns, execution_rights
from console.config import quotas
from console.db import audit, clock
from console.db.prepared import read_rows
from console.db.writer import write
from console.errors import ErrorCode, ServiceError
from console.models import Execution, MapRun, RunRow
from console.statuses import (
    UNSUCCESSFUL,
    ExecutionStatus,
    MachineStatus,
    RedriveStatus,
)
from console.store.events import outbox
from console.store.executions import start
from console.store.executions.step_rows import StoredValues
from console.store.machines import machines
from console.store.state import inbox

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.db.models import QuerySet

PERIOD_MS = 14 * 24 * 3600 * 1000
_YEAR_MS = 365 * 24 * 3600 * 1000
_TOKENS, _TOKEN_MS = 10, 15 * 60 * 1000
"""The number of client tokens that are kept, and their lifetime.

Source: API reference, RedriveExecution.
"""
_MOST_EVENTS = 24_999
_MOST_REDRIVES = 1_000
_DELETING = "State machine is in DELETING status"
BY_PARENT = "A child of a Map Run is redriven by its parent"
_BEHIND_ALL = 2**31 - 1


def redrive_refusal(execution: Execution) -> str:
    """Return why an execution cannot be redriven, "" if it can."""
    if execution.status not in UNSUCCESSFUL:
        return _outside(execution, 0)
    return redrive_refusals([execution])[execution.pk]


def api_refusal(execution: Execution) -> str:
    """Return why RedriveExecution rejects an execution, "" if it accepts it.

    A child that its Map Run can redrive is refused, too.
    """
    return BY_PARENT if execution.map_run_id is not None else redrive_refusal(execution)


def redrive_refusals(executions: Sequence[Execution]) -> dict[int, str]:
    """Return number -> why an execution cannot be redriven, "" if it can, in two queries."""
    now_ms = clock.now_ms()
    refusals = {execution.pk: _outside(execution, now_ms) for execution in executions}
    rest = [number for number, reason in refusals.items() if not reason]
    if rest:
        numbers = tuple(rest)
        stopping = {row[0] for row in read_rows("running children", _running_children, numbers)}
        rows = read_rows("runs of executions", _runs_of, numbers)
        runs = {number: (next_event, nothing) for number, next_event, nothing in rows}
        refusals |= {
            number: _inside(runs.get(number), stopping=number in stopping) for number in rest
        }
    return refusals


def _running_children(parents: Sequence[int]) -> QuerySet[Execution, tuple[int]]:
    """Return the query of the parents whose Map Runs have running children."""
    running = Execution.objects.filter(status=ExecutionStatus.RUNNING)
    return running.filter(map_run__parent__in=parents).values_list("map_run__parent")


def _runs_of(executions: Sequence[int]) -> QuerySet[RunRow, tuple[int, int, bool]]:
    """Return the query of the next event of each, and whether its run is empty."""
    nothing = ExpressionWrapper(Q(snapshot__contains='"frames":[]'), BooleanField())
    rows = RunRow.objects.filter(pk__in=executions).annotate(nothing=nothing)
    return rows.values_list("pk", "next_event", "nothing")


def _outside(execution: Execution, now_ms: int) -> str:
    """Return why an execution cannot be redriven, according to its own row."""
    if execution.status not in UNSUCCESSFUL:
        return f"Execution is {execution.status} and cannot be redriven"
    if arns.is_express(execution.arn) and execution.map_run_id is None:
        return "Execution belongs to an Express state machine and cannot be redriven"
    machine = execution.state_machine
    if execution.map_run_id is None and (
        machine is None or machine.status == MachineStatus.DELETING
    ):
        return _DELETING
    if now_ms - (execution.stop_ms or now_ms) > PERIOD_MS:
        return "Execution redrivable period exceeded"
    if now_ms - execution.start_ms > _YEAR_MS:
        return "Execution has exceeded the max execution time"
    if execution.redrive_count >= _MOST_REDRIVES:
        return f"Execution was redriven {_MOST_REDRIVES} times, the most there may be"
    return ""


def _inside(run: tuple[int, bool] | None, *, stopping: bool) -> str:
    """Return why an execution cannot be redriven, according to its run.

    ``run``: (next event, whether it is empty).
    """
    if stopping:
        return "A Map Run of the execution is still being stopped"
    if run is None or run[1]:
        return "Execution was started before the launch of RedriveExecution"
    return "Execution history event limit exceeded" if run[0] > _MOST_EVENTS else ""


def redrive_status(execution: Execution) -> tuple[str, str]:
    """Return redriveStatus and its reason ("" for none) for DescribeExecution."""
    reason = redrive_refusal(execution)
    if reason:
        return RedriveStatus.NOT_REDRIVABLE, reason
    if execution.map_run_id is not None:
        return RedriveStatus.REDRIVABLE_BY_MAP_RUN, ""
    return RedriveStatus.REDRIVABLE, ""


def redrive_execution(
    execution: Execution, *, token: str = "", actor: audit.Actor = audit.NOBODY
) -> int:
    """Continue a failed execution; return the redrive date (epoch ms).

    ``token``: a repeated one (of the last ten, within 15 minutes) gives the same answer. Raise
    ExecutionNotRedrivable.
    """
    limits = quotas.quotas_of(execution.project.name)
    if limits.open_executions is not None:
        start.check_open(execution.project, limits.open_executions)

    def store() -> int:
        # Lock the machine before the execution, as its deletion does. Else on PostgreSQL:
        # 1. We read that the machine is active.  2. It is marked, and removed: nothing runs.
        # 3. We write that the execution runs, and no deletion will ever end it.
        deleted = execution.map_run_id is None and not _has_machine(execution)
        rows = Execution.objects.select_for_update(of=("self",)).select_related("state_machine")
        row = rows.get(pk=execution.pk)
        if token and (answered := _redrives_by_token(row).get(token)):
            return answered
        if row.map_run_id is not None:
            raise ServiceError(ErrorCode.ExecutionNotRedrivable, BY_PARENT)
        reason = redrive_refusal(row) or (_DELETING if deleted else "")
        if reason:
            raise ServiceError(ErrorCode.ExecutionNotRedrivable, reason)
        people = (*execution_rights.starters_of(row), *execution_rights.people_behind(actor))
        row.acting_for = execution_rights.names_as_text(people)
        moment = _reopen(row, token)
        audit.record(execution.project, actor, "RedriveExecution", row.arn)
        return moment

    return write(store)


def _has_machine(execution: Execution) -> bool:
    """Return whether an execution's machine is active; it stays active until our commit."""
    machine = execution.state_machine_id
    return machine is not None and machines.is_active(machine)


def _reopen(row: Execution, token: str = "", not_before: int = 0) -> int:
    """Make an ended execution run again (inside a transaction); its next step continues it.

    ``not_before``: epoch milliseconds of another process, whose clock may be ahead of this
    process's.
    """
    moment = max(clock.now_ms(), not_before)
    row.status, row.stop_ms = ExecutionStatus.RUNNING, None
    row.output = row.error = row.cause = None
    row.redrive_count += 1
    tokens = ({token: moment} if token else {}) | _redrives_by_token(row)
    row.redrive_tokens = "\n".join(
        f"{used_token} {at_ms}" for used_token, at_ms in list(tokens.items())[:_TOKENS]
    )
    row.redrive_ms, row.redrive_token = moment, token
    row.save(
        update_fields=[
            "status",
            "stop_ms",
            "output",
            "error",
            "cause",
            "redrive_count",
            "redrive_ms",
            "redrive_token",
            "redrive_tokens",
            "acting_for",
        ]
    )
    inbox.post_message(row.pk, engine.Redrive())
    outbox.put_status_change(row)
    return moment


def _redrives_by_token(row: Execution) -> dict[str, int]:
    """Return client token -> redrive date (epoch ms) of the valid tokens, newest first."""
    since = clock.now_ms() - _TOKEN_MS
    # a process of the previous release leaves the token of its redrive alone
    last = {row.redrive_token: row.redrive_ms or 0} if row.redrive_token else {}
    lines = (line.partition(" ") for line in (row.redrive_tokens or "").splitlines())
    moments = last | {token: int(moment) for token, _, moment in lines}
    return {token: moment for token, moment in moments.items() if moment > since}


def repeated_states(execution: Execution) -> list[str]:
    """Return the names of the states that a redrive would run again.

    [] if a later version of this program has stepped the execution, or if it has succeeded
    meanwhile.
    """
    return repeated_states_of([execution.pk])[execution.pk]


def repeated_states_of(executions: Sequence[int]) -> dict[int, list[str]]:
    """Return ``repeated_states`` of each execution, by its number."""
    snapshots = RunRow.objects.filter(pk__in=executions).values_list("pk", "snapshot")
    return {number: list[str]() for number in executions} | {
        number: _unsuccessful_states(number, snapshot) for number, snapshot in snapshots
    }


def _unsuccessful_states(number: int, snapshot: str) -> list[str]:
    if not snapshot:
        return []
    try:
        run = engine.Run.loads(snapshot, StoredValues(number))
    except engine.NewerFormat:
        return []
    owners = {group.owner for group in run.groups.values()}
    return engine.unsuccessful_states(list(run.frames.values()), owners)


# -- Map Runs --------------------------------------------------------------------------------------


def redrive_children(run: MapRun, room: int) -> int:
    """Redrive up to ``room`` waiting children; return how many.

    They are sorted by item, so all waiting children come after the last one that was started. Those
    that cannot be redriven are passed: they keep their end, and are counted again. (Inside a
    transaction that locks the Map Run.)
    """
    unsuccessful = Execution.objects.filter(map_run=run, status__in=UNSUCCESSFUL)
    after, reopened = _last_taken(run), 0
    while reopened < room:
        batch = list(unsuccessful.filter(item_index__gt=after).order_by("item_index")[:room])
        if not batch:
            give_up(run)
            return reopened
        refusals = redrive_refusals(batch)
        for child in batch:
            if reopened == room:
                break
            after = child.item_index or 0  # a child has one
            if not refusals[child.pk]:
                child.acting_for = run.parent.acting_for
                _reopen(child, not_before=run.redrive_ms or 0)
                reopened += 1
    _count_again(run, after)
    return reopened


def _last_taken(run: MapRun) -> int:
    """Return the item of the last child that the run's last redrive took, -1 before the first."""
    redriven = Execution.objects.filter(map_run=run, redrive_ms__gte=run.redrive_ms or 0)
    last = redriven.order_by("-item_index").values_list("item_index", flat=True).first()
    return -1 if last is None else int(last)


def waiting_children(run: MapRun) -> Q:
    """Return the condition for children that wait for a redrive of their run."""
    if not run.pending_redrive:
        return Q(pk__in=())
    return Q(map_run=run, status__in=UNSUCCESSFUL, item_index__gt=_last_taken(run))


def waits_for_redrive(child: Execution) -> bool:
    """Return whether an execution is a child that waits for a redrive of its Map Run."""
    run = child.map_run
    if run is None or not run.pending_redrive:
        return False
    return Execution.objects.filter(waiting_children(run), pk=child.pk).exists()


def _count_again(run: MapRun, after: int) -> None:
    """Count the ended children up to an item; the others wait for a redrive."""
    passed = Q(item_index__lte=after)
    counts = Execution.objects.filter(map_run=run, status__in=UNSUCCESSFUL).aggregate(
        failed=Count("pk", filter=passed & Q(status=ExecutionStatus.FAILED)),
        timed_out=Count("pk", filter=passed & Q(status=ExecutionStatus.TIMED_OUT)),
        aborted=Count("pk", filter=passed & Q(status=ExecutionStatus.ABORTED)),
        pending_redrive=Count("pk", filter=~passed),
    )
    MapRun.objects.filter(pk=run.pk).update(**counts)


def not_redrivable(run: MapRun) -> int:
    """Return the number of failed children that cannot be redriven: too long or too old."""
    late = Q(stop_ms__lt=clock.now_ms() - PERIOD_MS)
    full = Q(runrow__next_event__gt=_MOST_EVENTS)
    return Execution.objects.filter(late | full, map_run=run, status__in=UNSUCCESSFUL).count()


def give_up(run: MapRun) -> None:
    """Count the children that still wait for a redrive under their former status.

    (Inside a transaction that locks the Map Run.)
    """
    if run.pending_redrive:
        _count_again(run, _BEHIND_ALL)
