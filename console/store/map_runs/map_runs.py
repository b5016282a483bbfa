"""Run a Map Run: start the child executions of a distributed Map, and report its outcome.

A Map Run is a row with counts of its children. ``advance_map_run`` is called after each change of
the counts: it starts children up to the concurrency, and reports the one outcome to the parent's
task. An extra call does nothing.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import engine
from console import arns
from console.db import audit, clock, signals
from console.db.writer import write
from console.errors import ErrorCode, ServiceError, ValidationException
from console.models import Execution, MapRun
from console.statuses import ExecutionStatus, MachineStatus, MapRunStatus, Topic
from console.store.executions import redrive
from console.store.executions.engine_failures import MAX_FAILURES
from console.store.executions.read_steps import status_above
from console.store.machines import machines
from console.store.map_runs import map_children, map_items, map_tasks
from console.store.state import inbox
from console.store.tasks import claim, schedule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from console.models import Project

_OUTPUTS_AT_ONCE = 50  # outputs per query; each may be as large as the limit for all
_TOO_LARGE = (
    "The Map Run returned a result with a size exceeding the maximum number of bytes service limit."
)
_EXCEEDED = "The specified tolerated failure threshold was exceeded"


def begin_map_run(execution_id: int, task: int) -> int | None:
    """Create the Map Run of a parent's task, once; return its id, None if the task is closed."""

    def make() -> int | None:
        existing = MapRun.objects.filter(parent_id=execution_id, task=task).first()
        if existing is not None:
            return existing.pk
        work = claim.claim_map(execution_id, task)
        if work is None:
            return None
        parent = Execution.objects.select_related("definition").get(pk=execution_id)
        map_input = json.loads(work.input)
        text = engine.processor_definition(parent.definition.text, map_input["path"])
        machine, _, _ = work.resource.rpartition(":")
        run = MapRun(
            parent=parent,
            task=task,
            arn=work.resource,
            state_machine_arn=machine.replace(":mapRun:", ":stateMachine:", 1),
            definition=machines.keep_definition(text),
            express=engine.is_express_processor(parent.definition.text, map_input["path"]),
            max_concurrency=map_input["concurrency"],
            tolerated_count=map_input["tolerated_count"],
            tolerated_percentage=map_input["tolerated_percentage"],
            total=0,
            reading=True,
            start_ms=clock.now_ms(),
            faults=engine.dumps(map_input["faults"]) if "faults" in map_input else None,
        )
        run.save(force_insert=True)
        if "inputs" in map_input:
            map_items.add_items(run.pk, 0, map(engine.dumps, map_input["inputs"]))
            map_items.complete_reading(run.pk, len(map_input["inputs"]))
        return run.pk

    return write(make)


def advance_map_run(map_run_id: int) -> bool:
    """Advance a Map Run by one transaction; return whether there is more to do at once."""
    return write(lambda: _progress(map_run_id))


def _progress(number: int) -> bool:
    # the lock keeps two threads that see a change at once from starting the same children twice
    rows = MapRun.objects.select_for_update(of=("self",))
    related = ("parent__state_machine", "parent__project")
    # not the parent's input, which may hold all items: this query runs for every hundred children
    rows = rows.select_related(*related).defer("parent__input")
    run = rows.filter(pk=number).first()
    if run is None or run.status != MapRunStatus.RUNNING:
        return False
    failures = map_tasks.count_failures(run.parent_id, run.task)
    if run.parent.status != ExecutionStatus.RUNNING or failures is None:
        _stop_children(run)
        _close(run, MapRunStatus.ABORTED)
        return False
    if failures:  # the run advances again, unless the rest of this transaction fails
        map_tasks.reset_failures(run.parent_id, run.task)
    if _too_many_failed(run):
        return _fail(run)
    if run.reading:
        return False
    if _ends_with_its_machine(run):
        return True
    if run.pending_redrive:
        return _redrive_children(run)
    finished = run.succeeded + run.failed + run.timed_out + run.aborted
    if finished == run.total:
        if not map_items.writer(run):
            _report(run, *_result(run))
        return False
    return map_children.start_children(run, finished)


def _fail(run: MapRun) -> bool:
    """Fail a run because too many children failed; return whether there is more to do."""
    if run.aborted and _is_being_deleted(run):  # they ended at their next transition
        return _end_parent(run)
    _stop_children(run)
    error = engine.TaskFailed(run.task, "States.ExceedToleratedFailureThreshold", _EXCEEDED)
    _report(run, MapRunStatus.FAILED, error)
    return False


def _ends_with_its_machine(run: MapRun) -> bool:
    """Abort the parent if another child would start while their machine is being deleted.

    To start an iteration is a transition; the children that run are stopped with their parent.
    """
    return run.started < run.total and _is_being_deleted(run) and _end_parent(run)


def _is_being_deleted(run: MapRun) -> bool:
    machine = run.parent.state_machine  # None: the parent is a child of a Map Run itself
    status = machine.status if machine else status_above(run.state_machine_arn)
    return status == MachineStatus.DELETING


def _end_parent(run: MapRun) -> bool:
    """Abort the parent with its running children; return True."""
    if schedule.close_task(run.parent_id, run.task, clock.now_ms()):  # it has not ended meanwhile
        schedule.close_tasks(run.parent_id, clock.now_ms())
        inbox.post_message(run.parent_id, engine.Stop())
    return True


def _too_many_failed(run: MapRun) -> bool:
    """Return whether either threshold is exceeded; without any, one failure is too many.

    AWS: the count is one of items, and a failed batch counts all of its items.
    """
    bad = run.failed + run.timed_out + run.aborted
    count, percentage = run.tolerated_count, run.tolerated_percentage
    if count is None and percentage is None:
        return bad > 0
    # a child has one item or more, so children alone may decide without reading their batches
    beyond_count = count is not None and bad > 0 and _bad_items(run, bad, count) > count
    beyond_share = percentage is not None and bad * 100 > percentage * run.total
    return beyond_count or beyond_share


def _bad_items(run: MapRun, bad: int, count: int) -> int:
    return bad if bad > count else map_items.count_bad_items(run, bad)


def _redrive_children(run: MapRun) -> bool:
    """Redrive some of the waiting children; return whether more wait."""
    finished = run.succeeded + run.failed + run.timed_out + run.aborted
    free = map_children.concurrency(run) - (run.started - finished - run.pending_redrive)
    return free > 0 and redrive.redrive_children(run, min(free, map_children.AT_ONCE)) > 0


def _result(run: MapRun) -> tuple[str, engine.TaskSucceeded | engine.TaskFailed]:
    """Return the status and the outcome of a run whose children have all ended."""
    outputs = outputs_of(run)
    if outputs is None:
        return MapRunStatus.FAILED, engine.TaskFailed(
            run.task, "States.DataLimitExceeded", _TOO_LARGE
        )
    return MapRunStatus.SUCCEEDED, engine.TaskSucceeded(run.task, outputs)


def outputs_of(run: MapRun) -> str | None:
    """Return the array of the successful children's results, by item; None if too large.

    The results are the outputs, unless WriterConfig says otherwise.
    """
    outputs: list[str] = []
    size = 1
    transformation = map_items.transformation_of(run)
    for text in _child_texts(run, transformation):
        output = text.strip()
        if transformation == "FLATTEN" and output.startswith("["):
            output = output[1:-1].strip()
            if not output:
                continue
        outputs.append(output)
        size += engine.byte_size(outputs[-1]) + 1
        if size > engine.MAX_BYTES:
            return None
    return "[" + ",".join(outputs) + "]"


def _child_texts(run: MapRun, transformation: str) -> Iterator[str]:
    """Yield the outputs of the children that succeeded or, with NONE, their descriptions."""
    if transformation == "NONE":
        for child in map_items.list_results(run.pk, [ExecutionStatus.SUCCEEDED]):
            yield engine.dumps(map_items.describe_child(child))
        return
    rows = Execution.objects.filter(map_run=run, status=ExecutionStatus.SUCCEEDED)
    outputs = rows.order_by("item_index").values_list("output", flat=True)
    for text in outputs.iterator(chunk_size=_OUTPUTS_AT_ONCE):
        yield text or "null"


def _report(run: MapRun, status: str, message: engine.TaskSucceeded | engine.TaskFailed) -> None:
    _close(run, status)
    if schedule.close_task(run.parent_id, run.task, clock.now_ms()):
        inbox.post_message(run.parent_id, message)


def _close(run: MapRun, status: str) -> None:
    MapRun.objects.filter(pk=run.pk).update(status=status, stop_ms=clock.now_ms())


def _stop_children(run: MapRun) -> None:
    """Stop the running children; children waiting for a redrive keep their status."""
    redrive.give_up(run)
    running = Execution.objects.filter(map_run=run, status=ExecutionStatus.RUNNING)
    for number in running.values_list("pk", flat=True):
        schedule.close_tasks(number, clock.now_ms())  # no outcome counts that comes after Stop
        inbox.post_message(number, engine.Stop())


def end_map_run(number: int, output: str) -> None:
    """End a run whose results were written elsewhere; ``output``: the Map's result."""
    _end_parent_task(
        number, MapRunStatus.SUCCEEDED, lambda task: engine.TaskSucceeded(task, output)
    )


def fail_map_run(number: int, error: str, cause: str) -> None:
    """Fail a run whose items cannot be read or whose results cannot be written."""
    _end_parent_task(
        number, MapRunStatus.FAILED, lambda task: engine.TaskFailed(task, error, cause)
    )


def _end_parent_task(
    number: int, status: str, message: Callable[[int], engine.TaskSucceeded | engine.TaskFailed]
) -> None:
    def store() -> None:
        rows = MapRun.objects.select_for_update().filter(pk=number, status=MapRunStatus.RUNNING)
        run = rows.first()
        if run is not None:
            _report(run, status, message(run.task))

    write(store)


# -- runs that cannot go on ------------------------------------------------------------------------


def task_of(number: int) -> tuple[int, int]:
    """Return (execution, task) of a run's parent."""
    return MapRun.objects.values_list("parent_id", "task").get(pk=number)


def project_of(number: int) -> int:
    """Return the project of a run."""
    return MapRun.objects.values_list("parent__project_id", flat=True).get(pk=number)


def note_error(execution_id: int, task: int, error: BaseException) -> None:
    """Count a failed attempt to begin or advance a run; after three, fail its task (G14).

    Do not call this for an outage of the database, which is not the fault of the run.
    """
    cause = f"The Map Run could not go on: {type(error).__name__}: {error}"

    def count() -> None:
        failures = map_tasks.count_failure(execution_id, task)
        if failures is not None and failures >= MAX_FAILURES:
            _give_up(execution_id, task, cause)

    write(count)


def _give_up(execution_id: int, task: int, cause: str) -> None:
    runs = MapRun.objects.filter(parent_id=execution_id, task=task)
    for run in runs:
        _stop_children(run)
        _close(run, MapRunStatus.FAILED)
    if schedule.close_task(execution_id, task, clock.now_ms()):
        inbox.post_message(execution_id, engine.TaskFailed(task, "States.Runtime", cause))


# -- looking at them -------------------------------------------------------------------------------


def get_map_run(project: Project, arn: str) -> MapRun:
    """Return a Map Run of the project; raise InvalidArn or ResourceNotFound."""
    arns.parse_arn(arn, "mapRun")
    rows = MapRun.objects.select_related("parent")
    run = rows.filter(arn=arn, parent__project=project).first()
    if run is None:
        raise ServiceError(ErrorCode.ResourceNotFound, f"Resource not found: '{arn}'")
    return run


def update_map_run(run: MapRun, actor: audit.Actor = audit.NOBODY, /, **changes: Any) -> None:
    """Change the settings of a running Map Run; raise ValidationException if it has ended.

    An ended run is rejected even without changes.
    """

    def store() -> None:
        going_on = MapRun.objects.filter(pk=run.pk, status=MapRunStatus.RUNNING)
        if not (going_on.update(**changes) if changes else going_on.exists()):
            raise ValidationException(
                "The Map Run has ended", reason="CANNOT_UPDATE_COMPLETED_MAP_RUN"
            )
        if not changes:
            return
        reason = ", ".join(f"{name} {value:g}" for name, value in changes.items())
        audit.record(run.parent.project, actor, "UpdateMapRun", run.arn, reason)
        signals.publish((Topic.MAP_RUN,), run.pk)

    write(store)


def running_map_runs() -> list[int]:
    """Return the Map Runs that have not ended, for the sweeper."""
    return list(MapRun.objects.filter(status=MapRunStatus.RUNNING).values_list("pk", flat=True))
