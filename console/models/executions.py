"""Models of executions: status, snapshot, history, inbox, timers, tasks, Map Runs.

PostgreSQL does not check their foreign keys (``db_constraint=False``), because that would cost more
than writing the rows; invariant I17 checks them.
"""

from __future__ import annotations

import json
from typing import ClassVar, NamedTuple

from django.db import models
from django.db.models.functions import Coalesce

from console.models.machines import Definition, StateMachine
from console.models.people import Project
from console.statuses import ExecutionStatus, MapRunStatus, TaskStatus


def _index_where_set(field: str, name: str) -> models.Index:
    """Return an index of the rows with a value in a column; most rows have none."""
    condition = models.Q((f"{field}__isnull", False))
    return models.Index(fields=[field], name=name, condition=condition)


def listed_ms() -> Coalesce:
    """Return the sort key of ListExecutions: the time of the end, else of the redrive or start.

    Source: API reference, ListExecutions.
    """
    return Coalesce("stop_ms", "redrive_ms", "start_ms")


class MapRun(models.Model):
    """A Map Run of a distributed Map: its settings, and the counts of ended children."""

    # the constraint below has an index that begins with it
    parent = models.ForeignKey(
        "Execution", on_delete=models.CASCADE, related_name="map_runs", db_index=False
    )
    task = models.IntegerField()  # the number of the parent's task: its MapRunStarted event
    arn = models.CharField(max_length=256, unique=True)
    state_machine_arn = models.CharField(max_length=256)  # of the children: <machine>/<label>
    definition = models.ForeignKey(Definition, on_delete=models.PROTECT)
    express = models.BooleanField(default=False, db_default=False)  # its children are
    status = models.CharField(max_length=10, default=MapRunStatus.RUNNING)
    reading = models.BooleanField(default=False)  # its items are still being read from outside
    max_concurrency = models.IntegerField(default=0)
    tolerated_count = models.IntegerField(null=True)
    tolerated_percentage = models.FloatField(null=True)
    total = models.IntegerField()
    started = models.IntegerField(default=0)
    succeeded = models.IntegerField(default=0)
    failed = models.IntegerField(default=0)
    timed_out = models.IntegerField(default=0)
    aborted = models.IntegerField(default=0)
    redrive_count = models.IntegerField(default=0)
    redrive_ms = models.BigIntegerField(null=True)
    pending_redrive = models.IntegerField(default=0)  # children that wait to be redriven
    start_ms = models.BigIntegerField()
    stop_ms = models.BigIntegerField(null=True)
    # JSON text of the faults for the children, as ``engine.load_child_faults`` reads it
    faults = models.TextField(null=True)  # noqa: DJ001 - NULL: none

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["parent", "task"], name="one_map_run_per_task")
        ]

    def __str__(self) -> str:
        return self.arn


class MapItem(models.Model):
    """The input of a child that has not started yet."""

    pk = models.CompositePrimaryKey("map_run_id", "item_index")
    map_run = models.ForeignKey(MapRun, on_delete=models.CASCADE, db_index=False)
    item_index = models.IntegerField()
    input = models.TextField()


class OwnExecutions(models.Manager["Execution"]):
    """The executions that ran on this server, without imported ones."""

    def get_queryset(self) -> models.QuerySet[Execution]:
        """Return the query."""
        return super().get_queryset().filter(imported_ms__isnull=True)


class ImportedExecutions(models.Manager["Execution"]):
    """The imported executions, which ran elsewhere: read-only, for pages."""

    def get_queryset(self) -> models.QuerySet[Execution]:
        """Return the query."""
        return super().get_queryset().filter(imported_ms__isnull=False)


NAMED = 80  # how much of an error is its name to an index, which takes no long texts


def error_name() -> models.Func:
    """Return the expression that the index of errors has."""
    return models.Func(models.F("error"), template=f"SUBSTR(%(expressions)s, 1, {NAMED})")


class Execution(models.Model):
    """An execution as the API and the pages show it.

    Status, output, error, cause and stop are written once. ``objects``: without imports;
    ``stored``: all.
    """

    # The indexes below begin with project and machine; no query finds executions by definition.
    project = models.ForeignKey(
        Project, on_delete=models.CASCADE, db_index=False, db_constraint=False
    )
    state_machine = models.ForeignKey(
        StateMachine, null=True, on_delete=models.SET_NULL, db_index=False, db_constraint=False
    )
    state_machine_arn = models.CharField(max_length=256)
    arn = models.CharField(max_length=512, unique=True)
    name = models.CharField(max_length=80)
    status = models.CharField(max_length=16, default=ExecutionStatus.RUNNING)
    role_arn = models.CharField(max_length=256)
    definition = models.ForeignKey(
        Definition, on_delete=models.PROTECT, db_index=False, db_constraint=False
    )
    revision_id = models.CharField(max_length=36, default="")
    machine_updated_ms = models.BigIntegerField()  # the machine's updateDate when this was started
    input = models.TextField()
    output = models.TextField(null=True)  # noqa: DJ001 - absent is not the empty text, here and below
    error = models.TextField(null=True)  # noqa: DJ001
    cause = models.TextField(null=True)  # noqa: DJ001
    start_ms = models.BigIntegerField()
    stop_ms = models.BigIntegerField(null=True)
    started_by = models.CharField(max_length=150, default="")  # user name, "" when unknown
    trace_header = models.CharField(max_length=256, default="")
    test_case = models.CharField(max_length=80, default="")  # of the mock configuration
    version_arn = models.CharField(max_length=340, default="")  # what it was started through
    alias_arn = models.CharField(max_length=340, default="")
    redrive_count = models.IntegerField(default=0)
    redrive_ms = models.BigIntegerField(null=True)
    redrive_token = models.CharField(max_length=64, default="")  # of the client's last redrive
    map_run = models.ForeignKey(
        MapRun, null=True, on_delete=models.CASCADE, related_name="children", db_index=False
    )
    item_index = models.IntegerField(null=True)
    imported_ms = models.BigIntegerField(null=True)  # set for an imported execution
    # JSON arrays of user names, NULL or "" if unknown: ``execution_rights`` says what they are for.
    # NULL, and no default, so that SQLite adds the columns without writing the whole table anew.
    edited_by = models.TextField(null=True)  # noqa: DJ001
    acting_for = models.TextField(null=True)  # noqa: DJ001
    # of one that a Task of another started: how many are above it (NULL: none), that one, the task
    # that waits
    depth = models.IntegerField(null=True)
    parent = models.BigIntegerField(null=True)
    parent_task = models.IntegerField(null=True)
    # client tokens of the last redrives, newest first, a line each: token, epoch milliseconds
    redrive_tokens = models.TextField(null=True)  # noqa: DJ001 - see above
    # JSON text of the injected faults and their seed, as ``engine.read_faults`` reads it
    faults = models.TextField(null=True)  # noqa: DJ001 - see above
    # JSON text of the place that it took of its machine's next starts: who set them, and when
    next_starts = models.TextField(null=True)  # noqa: DJ001 - see above

    objects = OwnExecutions()
    imports = ImportedExecutions()
    stored: models.Manager[Execution] = models.Manager()

    class Meta:
        indexes: ClassVar = [
            models.Index(
                fields=["map_run", "item_index"],
                name="child_of_map_run",
                condition=models.Q(map_run__isnull=False),
            ),
            models.Index(fields=["state_machine", "-start_ms", "-id"], name="execution_by_machine"),
            models.Index(fields=["project", "-start_ms", "-id"], name="execution_by_project"),
            models.Index(
                fields=["state_machine", "status", "-start_ms"], name="execution_by_status"
            ),
            # ListExecutions, which makes one query per status
            models.Index(
                models.F("state_machine"),
                models.F("status"),
                listed_ms().desc(),
                models.F("id").desc(),
                name="execution_by_time",
                condition=models.Q(map_run__isnull=True),
            ),
            # the lists, which leave the children of Map Runs out
            models.Index(
                fields=["project", "-start_ms", "-id"],
                name="execution_listed",
                condition=models.Q(map_run__isnull=True),
            ),
            models.Index(
                fields=["project", "status", "-start_ms", "-id"],
                name="execution_listed_by_status",
                condition=models.Q(map_run__isnull=True),
            ),
            # which errors there are: only what ended badly has an entry
            models.Index(
                "project",
                error_name(),
                name="execution_by_error",
                condition=models.Q(map_run__isnull=True, error__isnull=False),
            ),
            # what ended in a minute: the metrics
            models.Index(
                fields=["project", "stop_ms"],
                name="execution_by_stop",
                condition=models.Q(stop_ms__isnull=False),
            ),
            models.Index(
                fields=["project", "redrive_ms"],
                name="execution_by_redrive",
                condition=models.Q(redrive_ms__isnull=False),
            ),
            models.Index(
                fields=["project", "-imported_ms"],
                name="execution_by_import",
                condition=models.Q(imported_ms__isnull=False),
            ),
            _index_where_set("parent", name="execution_by_parent"),
        ]

    def __str__(self) -> str:
        return self.name


class RunRow(models.Model):
    """The progress of an execution: the engine's snapshot, fenced by ``version``.

    ``snapshot``: "" after a success, except for a replay, whose origin is stored only there.
    ``parked``: why no step may be taken, such as "paused"; "" if steps may be taken.
    """

    execution = models.OneToOneField(
        Execution, primary_key=True, on_delete=models.CASCADE, db_constraint=False
    )
    version = models.IntegerField(default=0)
    next_event = models.IntegerField(default=1)
    snapshot = models.TextField(default="")
    ready = models.BooleanField(default=True)  # can continue: the last step spent its budget
    failures = models.IntegerField(default=0)  # steps in a row that raised
    parked = models.TextField(default="")
    children_end = models.BooleanField(default=False)  # with it: the executions it has started

    class Meta:
        indexes: ClassVar = [
            models.Index(
                fields=["execution"],
                name="run_children_end",
                condition=models.Q(children_end=True),
            ),
            models.Index(fields=["execution"], name="run_ready", condition=models.Q(ready=True)),
        ]


class RunValue(models.Model):
    """Write-once texts of a run: items of a Map, outputs of finished branches and iterations."""

    pk = models.CompositePrimaryKey("execution_id", "key")
    execution = models.ForeignKey(
        Execution, on_delete=models.CASCADE, db_index=False, db_constraint=False
    )
    key = models.CharField(max_length=64)
    text = models.TextField()


class HistoryEvent(models.Model):
    """One event of an execution's history; append-only.

    ``details``: JSON text, "" for types without.
    """

    pk = models.CompositePrimaryKey("execution_id", "event_id")
    execution = models.ForeignKey(
        Execution, on_delete=models.CASCADE, db_index=False, db_constraint=False
    )
    event_id = models.IntegerField()
    previous = models.IntegerField()
    at_ms = models.BigIntegerField()
    type = models.CharField(max_length=32)
    state = models.CharField(max_length=80, default="")
    details = models.TextField(default="")


class InboxMessage(models.Model):
    """A message for an execution that no step has processed yet. ``body``: JSON of its fields."""

    execution = models.ForeignKey(Execution, on_delete=models.CASCADE, db_constraint=False)
    kind = models.CharField(max_length=20)
    body = models.TextField(default="{}")
    created_ms = models.BigIntegerField()


class Timer(models.Model):
    """A set timer of an execution."""

    pk = models.CompositePrimaryKey("execution_id", "name")
    execution = models.ForeignKey(
        Execution, on_delete=models.CASCADE, db_index=False, db_constraint=False
    )
    name = models.CharField(max_length=64)
    due_ms = models.BigIntegerField(db_index=True)


class Pause(models.Model):
    """A paused execution. ``stops_clock``: its timers are stopped; ``note``: the reason."""

    execution = models.OneToOneField(
        Execution, primary_key=True, on_delete=models.CASCADE, db_constraint=False
    )
    since_ms = models.BigIntegerField()
    paused_by = models.CharField(max_length=150, default="")
    stops_clock = models.BooleanField(default=False)
    note = models.TextField(default="")


class StoppedLine(NamedTuple):
    """A line of control at a breakpoint; ``number``: of its halt, ``when``: a ``BreakTime``."""

    number: int
    state: str
    when: str
    since_ms: int


class HaltedExecution(models.Model):
    """An execution with lines of control at breakpoints. Its steps write the row.

    ``since_ms``: when the first line stopped; ``count``: the number of halted lines; ``newest``:
    the number of the newest halt. ``lines``: the first of them as JSON, each ``[number, state,
    when, since_ms]``.
    """

    execution = models.OneToOneField(
        Execution,
        primary_key=True,
        on_delete=models.CASCADE,
        db_constraint=False,
        related_name="halted",
    )
    since_ms = models.BigIntegerField()
    count = models.IntegerField()
    newest = models.IntegerField()
    lines = models.TextField()

    @property
    def stamp(self) -> str:
        """Return a value that changes when a line stops or continues."""
        return f"b{self.newest}.{self.count}"

    @property
    def unnamed(self) -> int:
        """Return the number of halted lines that are not listed in the row."""
        return self.count - len(self.stops)

    @property
    def stops(self) -> list[StoppedLine]:
        """Return the lines in the row, in the order in which they stopped."""
        return [StoppedLine(*line) for line in json.loads(self.lines)]


class DebugEdit(models.Model):
    """A user's action on a line of control at a breakpoint, or a fault, beside the history.

    ``event_id``: the last event of the line. ``what``: ``input``, ``variables`` or ``output`` for
    an edit, else ``answer``, ``skip`` or ``fail``. ``before``, ``after``: JSON texts, or "".
    """

    execution = models.ForeignKey(Execution, on_delete=models.CASCADE, db_constraint=False)
    event_id = models.IntegerField()
    at_ms = models.BigIntegerField()
    state = models.CharField(max_length=80)
    what = models.CharField(max_length=10)
    by = models.CharField(max_length=150)
    before = models.TextField()
    after = models.TextField()


class TaskRow(models.Model):
    """A scheduled task, open until ``closed_ms``. Its number is the id of its ...Scheduled event.

    ``status``: scheduled (not claimed), started (a worker or a call has claimed it), waiting (it
    runs elsewhere: ``job`` has the poll, "" if an answer with the task token will end it), closed.
    ``token_hash``: SHA-256 of the task token, which is stored nowhere in clear.
    """

    pk = models.CompositePrimaryKey("execution_id", "task")
    execution = models.ForeignKey(
        Execution, on_delete=models.CASCADE, db_index=False, db_constraint=False
    )
    task = models.IntegerField()
    kind = models.CharField(max_length=10)  # lambda | activity | service
    resource = models.CharField(max_length=512)
    service = models.CharField(max_length=80, default="")
    action = models.CharField(max_length=120, default="")
    pattern = models.CharField(max_length=20, default="")
    state = models.CharField(max_length=80)
    input = models.TextField()
    credentials = models.TextField(default="")
    attempt = models.IntegerField(default=0)
    entered_event = models.IntegerField(default=0)
    status = models.CharField(max_length=10, default=TaskStatus.SCHEDULED)
    token_hash = models.CharField(max_length=64, unique=True)
    timeout_s = models.IntegerField(null=True)
    heartbeat_s = models.IntegerField(null=True)
    timeout_due_ms = models.BigIntegerField(null=True)
    clock = models.CharField(max_length=16, default="")  # which one timeout_due_ms is, or ended it
    close_due_ms = models.BigIntegerField(null=True)  # of an activity task: its end at the latest
    heartbeat_due_ms = models.BigIntegerField(null=True)
    scheduled_ms = models.BigIntegerField()
    started_ms = models.BigIntegerField(null=True)
    heartbeat_ms = models.BigIntegerField(null=True)
    closed_ms = models.BigIntegerField(null=True)
    worker = models.CharField(max_length=80, default="")
    dispatches = models.IntegerField(default=0)  # above 1: sent again after a worker was lost
    losses = models.IntegerField(default=0)  # processes that died while it ran in them
    job = models.TextField(default="")
    looks = models.IntegerField(default=0)
    look_due_ms = models.BigIntegerField(null=True)

    class Meta:
        indexes: ClassVar = [
            models.Index(fields=["status", "kind", "scheduled_ms"], name="task_to_dispatch"),
            models.Index(
                fields=["resource", "status", "scheduled_ms"],
                name="task_of_activity",
                condition=models.Q(kind="activity"),
            ),
            _index_where_set("timeout_due_ms", name="task_timeout_due"),
            _index_where_set("heartbeat_due_ms", name="task_heartbeat_due"),
            _index_where_set("look_due_ms", name="task_look_due"),
            # what began and ended in a minute: the metrics
            _index_where_set("started_ms", name="task_by_start"),
            _index_where_set("closed_ms", name="task_by_close"),
        ]
