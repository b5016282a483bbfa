"""The database layer: connections, fast SQL, group commit, signals, clock, and project settings.

Theory of operation
===================

Most of a team's load is small: start an execution, run a few steps, describe it, hand out a task,
record its answer. On an embedded database each of these is a handful of rows, and Django's work
around the rows costs more than the rows. This package and ``console.server`` hold the faster
replacements. All other code uses plain Django.

**One writer** (``console.db.writer``) commits the changes of many threads together, because a
commit ends with a write to the disk that all of them can share. ``write(fn)`` is the seam; its
callers know nothing of this package. On PostgreSQL it sends the rows of all of them in two round
trips (``console.db.merged`` has the theory).

**SQL made once** (``rows``). The ORM compiles a query anew each time it runs. ``rows`` makes the
text from the model's fields once, so the models stay the only description of the tables. It
supports models with plain fields only and sends no Django signals. Pages and rare paths use the
ORM.

**Queries composed once** (``console.db.prepared``). The ORM composes a page's queries anew for each
request. The overview, the lists and an execution's page keep their SQL.

**Plain cursors** (``rows.open_cursor``). On SQLite, Django's cursors check, wrap and translate each
statement. These do that once a statement text and raise Django's errors. On PostgreSQL a row is
read by a statement that the server parses once a connection. In all other cases there, and wherever
queries are watched (in tests), the cursor is Django's own.

**Reads in the event loop** (``server.threads.run_in_loop``). A short call on SQLite reads its row
in the loop's own thread: another thread would take longer to wake. All other calls, and all calls
on PostgreSQL, run on ``server.threads.threads()``.

**One way through the threads** (``server.threads.Threads.run_to_commit``). The thread of a call
hands its change to the thread that commits, and that one wakes the event loop. The loop is woken
once for a call and its commit.

**One thread per page** (``server.page_handler``). Django's handler switches from the event loop to
a thread for each middleware method. Pages switch once: a poll without news costs a tenth less
processor time.

**One processor** (``functions.cpu_affinity``). One thread of an interpreter runs at a time. The
writer lets the others in at each statement:

    1. the writer executes a statement and lets go of the interpreter
    2. on several processors another thread takes it at once, and keeps it for up to 5 ms
    3. the statement has ended after 20 microseconds; the writer waits for the rest

On one processor the writer goes on before the other thread begins. A web process on PostgreSQL
gains more than that: each of its calls passes through three threads. Workers, processes of
functions and PostgreSQL's own are not kept to one.

**No garbage collection of imported modules** (``server.gc_freeze``). A long history makes many
objects, which starts full collections; without this each visits all imported objects.

``python -m tests.benchmarks.fast_path`` measures what each of them gains, beside a server that does
the same the plain way; docs/explanation/decisions/sql-made-once.md has the figures. One wake-up of
the event loop for several commits, and summaries of long histories gained nothing that could be
seen, and were deleted.
"""
