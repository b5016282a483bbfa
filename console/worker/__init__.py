"""The worker: threads that step executions, call the services of Tasks, and fire timers.

Theory of operation
===================

All state is in the rows; the worker has almost nothing else in memory. ``Embedded`` is the worker
of a process that does all the work (``manage.py up``); ``Team`` is one of several workers on a
PostgreSQL (``manage.py worker``). If it is killed at any moment, another worker continues from the
rows. ``console.store`` explains which rows a crash leaves.

**Waking and sweeping.** After a commit, a signal names an execution, task or delivery that can
continue. A signal may be lost. Therefore ``sweep`` searches the rows each second: runs that are
ready, messages in inboxes, scheduled tasks, Map Runs, bulk jobs. One statement (``open_work``)
returns which of these kinds may have rows, and ``sweep`` reads the rows of these kinds. Waking an
execution twice is harmless, because a step without work writes nothing. In a team a signal goes to
one worker, and all signals of an execution go to the same one (``pg_signals``).

**Stepping** (``stepping``). Two threads compute steps, each execution on one thread at a time. One
statement reads the rows of many queued executions (``read_ahead``). An execution that is woken
during its step is stepped again afterwards:

    1. The thread reads the inbox.    2. A message arrives; ``wake`` finds that a step is running,
    and marks the execution.    3. The step commits without the message.    4. It is queued again.

**Timers** (``timer_queue``). A heap has the timers that are due within five seconds. Each sweep
refills it from the rows, and signals add timers that are set meanwhile. A due entry only wakes its
execution or expires its task. The row decides: a heartbeat that arrives at the last moment changes
the deadline in the row, and the update that expires the task has the deadline in its WHERE.

**Calls** (``task_delivery``, ``call_pool``). A pool of threads claims tasks and calls functions and
services. If a call still runs after its task has ended, its thread is replaced, because nothing can
end a thread. A call that only waits (for a child execution or a job) returns its thread, and its
wait continues in ``call_waits``.

**Delivery of events** (``outbox_relay``). One worker finds the rules that match an event, claims
the deliveries that are due, and sends them on a pool. A failed delivery is repeated with growing
pauses for a day; then it becomes a dead letter. A delivery that was ``sending`` when its process
died is sent again: at least once.

**Leases** (``team``, ``store.tasks.workers``). Each process of a team has a row with the time until
which it counts as alive, and renews it five times as often as needed. A worker that finds an
expired lease removes it, and offers the tasks of that process again.

    1. A is stopped (a laptop sleeps) for longer than its lease.    2. B removes A's lease and
    offers A's tasks again; C calls one of them, with the same idempotency key.    3. A wakes and
    has an outcome, too. The first outcome closes the row; the second is dropped.    4. A's renewal
    finds no row: A registers under a new name.

The workers share the sweep: of n live workers in the order of their names, number r takes the
executions whose id modulo n is r. A worker that has missed two renewals does not count for the
others, so they also sweep its share. The first worker is the leader: only it does work that is done
once for all (deliveries, metrics, retention). During a change of leaders, two may lead for some
seconds; all of this work tolerates that.

**Worker lock** (``worker_lock``). An embedded worker holds an exclusive advisory lock of the
database, the workers of a team a shared one, so the two kinds never work on one database. On SQLite
the lock of the data folder has this purpose.

**Crash journal and poison guard.** An execution may kill its process: by memory, or an error in C
code. ``crash_journal`` is a memory-mapped file in which each thread notes the execution or task
that it computes; the file survives ``kill -9``. The process that takes over suspects these
executions, not those that only waited. Without the file, an embedded worker suspects all executions
that can continue when it starts. ``poison_guard`` steps the suspects one by one, and counts each
try in the row before it begins:

    1. Count the try of execution 9 (committed).    2. Step it.    3. The process dies.
    4. The next start counts again; at the third count it ends execution 9 with an error instead.

A successful step clears the count. Tries during an outage of the database are not counted.

**Outages** (``retrying``). Threads never end: an error is logged, and the next sweep repeats the
work. An outage of the database writes one line at its first error, and one at its end.
"""

from __future__ import annotations

from console.worker.embedded import Embedded

__all__ = ["Embedded"]
