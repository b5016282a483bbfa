"""The worker: threads that step executions, call the services of Tasks, and fire timers.

Theory of operation
===================

The rows are the truth, and the worker keeps almost nothing else. ``Embedded`` is the worker of a
process that does all the work; ``Team`` is one of several on a PostgreSQL. Killed at any moment,
the next one goes on where the rows stand (the store's own theory tells what each crash leaves).

**Waking and sweeping.** After a commit a signal says what can go on: an execution, a task, a
delivery. A signal may be lost. So each second ``sweep`` looks for what could go on by itself: runs
that are ready, messages in inboxes, scheduled tasks, Map Runs, bulk jobs. It asks by one statement
which of these kinds there may be (``open_work``), and reads the rows of those. Waking twice is
harmless, because a step that finds nothing to do writes nothing. A job of the queue only wakes its
execution. A worker in which many wait takes no more jobs.

**Stepping** (``stepping``). Two threads compute steps, one execution in one thread at a time. The
rows of many that are queued are read by one statement (``read_ahead``). What is woken while it is
being stepped is stepped again afterwards:

    1. The thread reads the inbox.    2. A message comes in; ``wake`` finds the step under way and
    remembers it.    3. The step commits without the message.    4. It is queued again.

**Timers** (``timer_queue``). A heap holds what is due within five seconds; a refill every sweep
reads it from the rows, and signals add what is armed nearer than that. Popping an entry only wakes
the execution or expires the task. The row decides: a heartbeat that arrives at the last moment
moves the deadline in the row, and the update that expires the task has the deadline in its WHERE.

**Calls** (``task_delivery``, ``call_pool``). A pool of threads claims tasks and calls functions and
services. A call that still runs when its task is over hangs: its thread is replaced, since nothing
can end a thread. A call that only waits (for a child execution, for a job) gives
its thread back and goes on in ``call_waits``.

**Delivery of events** (``outbox_relay``). One worker routes events and claims deliveries that are
due, and sends them on a pool. A failure is tried again with growing pauses for a day, then it is a
dead letter. A delivery that was ``sending`` when its process died is sent again: at least once.

**Leases** (``team``, ``store.tasks.workers``). Each process of a team has a row with a moment until
which it is alive, and renews it five times as often as needed. Who finds an expired lease removes
it and offers again what that process had claimed.

    1. A is stopped (a laptop sleeps) for longer than its lease.    2. B removes A's lease and
    offers A's tasks again; C calls one of them, with the same idempotency key.    3. A wakes and
    has an outcome, too: the first one closes the row, the other one is dropped.    4. A's renewal
    finds no row: A registers under a new name.

Sweeping is shared: of n living workers in the order of their names, number r takes the executions
whose id modulo n is r. The first one leads: it alone does what is done once for all (deliveries,
metrics, retention). During a change of leaders two may lead for a second; all of it bears that.

**Worker lock** (``worker_lock``). An embedded worker holds an advisory lock of the database alone,
the workers of a team share it, so the two kinds never work on one database. On SQLite the lock of
the data folder does that.

**Crash journal and poison guard.** An execution may kill its process: memory, a fault in C code.
``crash_journal`` is a mapped file in which each thread notes the execution or task it computes; the
file survives ``kill -9``. Who takes over reads what was computed, not what only waited. A worker of
a team suspects these executions, an embedded worker all that can go on when it starts.
``poison_guard`` steps the suspects one by one, and counts each try in the row before it begins:

    1. Count the try of execution 9 (committed).    2. Step it.    3. The process dies.
    4. The next start counts again; at the third count it ends execution 9 with an error instead.

A step that succeeds clears the count. An outage of the database is nobody's fault and not counted.

**Outages** (``retrying``). Threads never end: what fails is logged and done again by the sweep. The
first failure of an outage writes one line, and so does its end.
"""

from __future__ import annotations

from console.worker.embedded import Embedded

__all__ = ["Embedded"]
