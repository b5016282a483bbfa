"""The database layer: connections, fast SQL, group commit, signals, clock, and project settings.

Theory of operation
===================

Most of a team's load is small: start an execution, run a few steps, describe it, hand out a task,
record its answer. On an embedded database each of these is a handful of rows, and Django's work
around the rows costs more than the rows. This package and ``console.server`` hold the faster
replacements. All other code uses plain Django.

**One writer** (``console.db.writer``) commits the changes of many threads together, because a
commit ends with a write to the disk that all of them can share. Callers use only
``write(fn)``. On PostgreSQL it sends the rows of all changes in two round trips
(``console.db.merged`` explains how).

**SQL made once** (``rows``). The ORM compiles a query each time it runs. ``rows`` generates the
SQL from the model's fields once, so the models remain the only description of the tables. It
supports only models with plain fields, and sends no Django signals. Pages and rare writes use the
ORM.

**Queries composed once** (``console.db.prepared``). The overview, the lists and an execution's page
cache the SQL of their queries.

**Plain cursors** (``rows.open_cursor``). On SQLite, Django's cursors check, wrap and translate each
statement. These cursors do so once for each statement text, and raise Django's errors. On
PostgreSQL a row is read by a prepared statement. All other statements there, and all statements
while a test watches the queries, use Django's cursor.

**Reads in the event loop** (``server.threads.run_in_loop``). A short call on SQLite reads its row
in the loop's own thread: another thread would take longer to wake. All other calls, and all calls
on PostgreSQL, run on ``server.threads.threads()``.

**One way through the threads** (``server.threads.Threads.run_to_commit``). The thread of a call
passes its change to the committing thread, which wakes the event loop. So the loop is woken once
for a call and its commit.

**One thread per page** (``server.page_handler``). Django's handler switches from the event loop to
a thread for each middleware method. Pages switch once: a poll without news costs a tenth less
processor time.

**One processor** (``functions.cpu_affinity``). One thread of an interpreter runs at a time. The
writer releases the interpreter at each statement:

    1. the writer executes a statement and releases the interpreter
    2. on several processors another thread takes it at once, and keeps it for up to 5 ms
    3. the statement has ended after 20 microseconds; the writer waits for the interpreter

On one processor the writer continues before the other thread begins. A web process on PostgreSQL
gains more, because each of its calls passes through three threads. Workers, processes of functions
and PostgreSQL's processes may use all processors.

**No garbage collection of imported modules** (``server.gc_freeze``). A long history makes many
objects, which starts full collections; without this each visits all imported objects.

``python -m tests.benchmarks.fast_path`` compares the server with and without each of these;
docs/explanation/decisions/sql-made-once.md has the figures. One wake-up of the event loop for
several commits, and summaries of long histories, had no measurable gain and were deleted.
"""
