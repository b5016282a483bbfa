"""``manage.py worker``: run executions, beside any number of other workers."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
from typing import TYPE_CHECKING, Any, NoReturn

import structlog
from django.core.management.base import CommandError
from django.db import Error, connection, connections

from console.db import postgres
from console.management import metrics_port
from console.management.base import DataFolderCommand, WrongUse
from console.management.team import prepare
from console.server.gc_freeze import spare_collections
from console.server.watchdog import Watchdog
from console.worker import health_file

if TYPE_CHECKING:
    from argparse import ArgumentParser

log = structlog.get_logger(__name__)
_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_AGAIN_S = 0.05  # between the death of a process and its successor
_YOUNG_S = 10.0  # a process that ends earlier by itself counts as failed to start
_LONGEST_S = 5.0
_LOOK_S = 0.2
_GRACE_S = 5.0


class Command(DataFolderCommand):
    """Works until SIGTERM or Ctrl-C, then hands its work over within a second."""

    help = "Work on the executions of a team, on PostgreSQL."
    requires_system_checks: list[str] = []
    requires_migrations_checks = False

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the number of processes."""
        parser.add_argument(
            "--processes",
            type=int,
            default=1,
            metavar="N",
            help="worker processes; one that ends is replaced (1: only this process)",
        )

        metrics_port.add_option(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Prepare the database, work, hand over."""
        del args
        metrics_port.check_option(options["metrics_port"], options["processes"])
        if options["processes"] > 1 and not hasattr(os, "fork"):
            raise WrongUse(
                f"--processes: got {options['processes']}, wanted 1: processes are forked, which "
                "this system cannot do; start the command more than once"
            )
        prepare(options["processes"])
        from console.worker import team  # noqa: F401 - its packages have been checked for

        spare_collections()
        postgres.limit_statements()
        if options["processes"] > 1:
            _Watch(options["processes"]).run()
        else:
            metrics_port.serve_port(options["metrics_port"], whole=False)
            _work()
            _exit(0)


def _work(parent: int | None = None) -> None:
    """Work until stopped. ``parent``: the process that forked this worker, if any.

    Only a forked worker ends with its parent: nobody else would ever end it. One that was started
    by a shell or a process manager has another parent as soon as that is gone, and works on.
    """
    from console.worker.team import Team  # its packages have been checked for

    ended = threading.Event()
    signals_received: list[
        int
    ] = []  # not the event: its lock may be held by what the signal interrupts
    for name in _SIGNALS:
        signal.signal(name, lambda number, _: signals_received.append(number))
    worker = Team(on_end=ended.set)
    worker.start()
    connection.close()  # this thread needs it no more
    # with its end in one text: unbuffered, the lines of several processes would run into each other
    print(f"worker {worker.name} works\n", end="", flush=True)  # noqa: T201 - what the command is asked for
    health_file.touch_file()
    watchdog = Watchdog(lambda: worker.renewed_at, "the worker's lease", health_file.touch_file)
    watchdog.start()
    while not signals_received and not ended.wait(_LOOK_S):
        if parent is not None and os.getppid() != parent:
            log.warning("the process that forked this worker is gone; it ends", parent=parent)
            break
    watchdog.stop()
    worker.stop()
    health_file.remove_file()


def _exit(status: int) -> NoReturn:
    """Exit at once, without waiting for threads blocked on a silent database."""
    logging.shutdown()
    sys.stdout.flush()
    os._exit(status)


class _Watch:
    """Supervises a number of worker processes."""

    def __init__(self, processes: int) -> None:
        self._wanted = processes
        self._pause_s = _AGAIN_S
        self._forked_at: dict[int, float] = {}
        self._children: set[int] = set()
        self._ending = False

    def run(self) -> None:
        """Start the processes, restart dead ones, and exit when all have ended."""
        connections.close_all()  # a connection must not be shared with a child
        connection.close_pool()  # type: ignore[attr-defined]
        for name in _SIGNALS:
            signal.signal(name, self._end)
        while not self._ending:
            while len(self._children) < self._wanted and not self._ending:
                self._fork()
            self._reap()
        deadline = time.monotonic() + _GRACE_S
        while self._children and time.monotonic() < deadline:
            self._reap(os.WNOHANG)
            time.sleep(0.02)
        self._tell(signal.SIGKILL)

    def _fork(self) -> None:
        parent = os.getpid()
        child = os.fork()
        if child == 0:
            status = 1
            try:
                _work(parent)
                status = 0
            except (CommandError, Error) as error:
                log.error("a worker could not start", why=str(error).partition("\n")[0])  # noqa: TRY400
            except BaseException:
                log.exception("a worker ended")
            finally:
                os._exit(status)
        self._children.add(child)
        self._forked_at[child] = time.monotonic()

    def _reap(self, options: int = 0) -> None:
        try:
            child, status = os.waitpid(-1, options)
        except (ChildProcessError, InterruptedError):
            return
        self._children.discard(child)
        if not child:
            return
        lived_s = time.monotonic() - self._forked_at.pop(child, 0.0)
        if not self._ending:
            log.warning("a worker died and is replaced", pid=child, status=status)
            # one that cannot even start, as while the database is out, is not started all the time
            hopeless = os.WIFEXITED(status) and lived_s < _YOUNG_S
            self._pause_s = min(2 * self._pause_s, _LONGEST_S) if hopeless else _AGAIN_S
            self._wait(self._pause_s)

    def _wait(self, seconds: float) -> None:
        """Wait for this many seconds, or until the command is stopped."""
        until = time.monotonic() + seconds
        while not self._ending and time.monotonic() < until:
            time.sleep(_AGAIN_S)

    def _end(self, *_: object) -> None:
        self._ending = True
        self._tell(signal.SIGTERM)

    def _tell(self, name: int) -> None:
        for child in self._children:
            try:
                os.kill(child, name)
            except ProcessLookupError:
                continue
