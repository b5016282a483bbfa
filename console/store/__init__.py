"""The store: the only code that writes executions, machines, tasks, events and people.

Theory of operation
===================

An execution is a row of ``Execution`` (what the API shows) and a row of ``RunRow`` (the engine's
snapshot, with a version). Everything that happens to it is a *message*. The engine is a pure
function: snapshot and messages in, new snapshot, history events and commands out. The store makes
that durable. It rests on four ideas.

**Inbox.** A sender of a message (a task's outcome, a Stop, a Redrive) inserts a row into
``InboxMessage`` and never touches the snapshot. Due timers are messages, too: their rows are in
``Timer``.

**Fence.** ``executions.step`` reads snapshot, inbox and due timers, computes, and commits all that
follows in one transaction: the snapshot, the events, the values, new tasks and timers, and the
deletion of the messages it took. Its first statement is ``UPDATE ... WHERE version = <as read>``.
If that changes no row, another process was first, and the whole transaction is rolled back
(``Fenced``). The same statement compares the epoch, so a process that runs on while a backup is
restored writes nothing.

    1. A reads version 7.                 2. B reads version 7.
    3. A commits version 8.               4. B's update finds no version 7: B writes nothing.
    5. B's messages are in A's commit or still in the inbox: nothing is lost, nothing is doubled.

**Claims.** A task is a row of ``TaskRow``, written by the step that scheduled it. A worker claims
it by ``UPDATE ... SET status = 'started' WHERE status = 'scheduled'``; one of many gets it. The
first outcome closes the row (``WHERE status <> 'closed'``) and posts its message in the same
transaction, so a task has one outcome; later ones are rejected (G11).

**Outbox.** An event for others is a row of ``OutboxEvent``, written in the transaction that
changed the status, and only if a rule matches. ``events.outbox`` turns it into deliveries later,
and the worker's relay sends them, at least once, always with the same event id.

What a crash between any two steps does
---------------------------------------

    1. A client calls StartExecution.
       *Crash:* nothing is stored. The client gets no answer and calls again.
    2. ``start`` inserts Execution, RunRow, events, tasks, timers; the commit makes it durable (G1).
       *Crash after the commit:* the client gets no answer and calls again. The same name with the
       same input finds the execution and returns it.
    3. A signal wakes a worker.
       *Crash:* the signal is gone. The sweeper finds the row (``ready``, messages, due timers).
    4. A worker computes a step.
       *Crash:* nothing is stored; the next worker computes it again from the same rows.
    5. The step is committed, with the tasks it schedules.
       *Crash after the commit:* a task row is ``scheduled``; the sweeper offers it.
    6. A worker claims a task.
       *Crash after the commit:* the row is ``started`` by a process that is gone. When its lease
       ends, or at the next start, ``tasks.lost_calls`` offers the task again.
    7. The worker calls the function or service.
       *Crash during or after the call:* its effect is unknown. It is made again with the same
       idempotency key, or fails if the machine says so (``stateyard:onWorkerLoss``).
    8. The outcome closes the row and is in the inbox: one transaction.
       *Crash after the commit:* the message waits in the inbox; go on at 4.
    9. The step that ends the execution writes status, output and its event for the outbox.
       *Crash after the commit:* the event waits in the outbox; the relay finds it.
    10. The relay sends a delivery.
       *Crash before its outcome is stored:* it is sent again, with the same event id.

**Joint commits.** The outcome of a plain call is not stored as a message: the worker that made the
call steps the run that it committed last (``step.begin_outcomes``), and the commit of that step
closes the task. It writes nothing if run, task or machine have changed meanwhile:

    1. A calls for task 5 of version 7.   2. B stops the execution: task 5 is closed, version 8.
    3. A has the outcome. Its commit asks for version 7 and an open task 5: Fenced.
    4. A records the outcome by itself, as in step 8 above, finds the task closed, and drops it.

A crash between the call and that commit has the effect of step 7 above.

``write(fn)`` (``db.writer``) is the only way to a transaction. One thread of a process commits the
changes of all threads: on SQLite each in a savepoint, on PostgreSQL merged (``db.merged``). A
change that cannot be merged is committed by its own thread, which repeats it only if it was
certainly not committed. So ``fn`` may run twice, and must read all data for its decisions itself.

Packages
========

Imports run one way: state < machines < tasks < events < executions < map_runs < people.
``PUBLIC`` lists, by package, the modules that the worker, the API and the pages may import; the
others are for the store alone. tests/console/store/test_packages.py checks both.
"""

from __future__ import annotations

PACKAGES = ("state", "machines", "tasks", "events", "executions", "map_runs", "people")
"""The packages, lowest first: each imports only itself and the ones before."""

PUBLIC = {
    "state": (
        *("crash_watch", "health", "history", "history_columns", "history_pages"),
        *("inbox", "late_schedules", "open_work", "pause"),
        *("transition_rate", "wait_scale"),
    ),
    "machines": (
        *("activity_limits", "drafts", "log_groups", "machine_options", "machines"),
        *("published", "revisions", "tags", "versions"),
    ),
    "tasks": (
        *("activities", "answers", "call_targets", "claim", "complete", "expiry"),
        *("handover", "jobs", "lost_calls", "manual", "schedule", "timeouts"),
        *("workers",),
    ),
    "events": (*("outbox",),),
    "executions": (
        *("breakpoints", "children", "engine_failures", "faults", "find", "imports"),
        *("last_states", "max_duration", "next_starts", "outcome_steps", "read_steps"),
        *("recorded_answers", "redrive", "refusals", "replay", "retention", "start", "step"),
        *("step_rows", "stop", "transitions", "waiting_starts"),
    ),
    "map_runs": (*("map_counts", "map_items", "map_runs", "map_tasks"),),
    "people": (
        *("login_attempts", "login_links", "masks", "names", "notes", "people"),
        *("reset", "sample_project"),
    ),
}
"""Package -> the modules that other packages may import."""
