"""Connections to the database go silent: no answer arrives, and no error tells either side.

``blackholed``: the proxy drops what is sent on existing connections, both ways, while new ones
work, as after a failover or in a NAT; the near end still acknowledges. ``half-closed``: one side of
each existing connection is gone without notice to the other, or only one direction is closed.
``frozen``: sessions of the server are stopped, or everything between it and its clients is.
"""

from __future__ import annotations

import contextlib
import os
import random
import selectors
import signal
import socket
import threading
import time
from typing import TYPE_CHECKING, Self

import psycopg

from tests.chaos.database import Proxy
from tests.chaos.load import Load, Report
from tests.chaos.stage import Size, begin, close
from tests.postgres import SESSIONS, Postgres

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LONGEST_S = 30.0
_FROZEN_S = 25.0  # a session
_PAUSED_S = 8.0  # the whole server
_SERVER_NOTICES_S = 25.0  # console.db.postgres.TIMEOUTS: 10 s, and three probes 5 s apart
_COUNTS = (
    "SELECT count(*), count(*) FILTER (WHERE status = 'RUNNING') FROM console_execution"
    " WHERE map_run_id IS NULL"
)


class SilentProxy(Proxy):
    """Passes bytes on until it is told not to, and then tells nobody."""

    def __init__(self, server: str) -> None:
        """Take connections for the server's socket."""
        self._age = 0
        self._how = ""
        self._flows = threading.Event()
        self._flows.set()
        self._ends_early = threading.Event()
        self.struck = 0
        super().__init__(server, 0.0, 0)

    def blackhole(self) -> None:
        """Drop from now on what comes on the connections that exist."""
        self._how, self._age = "blackholed", self._age + 1

    def half_close(self) -> None:
        """Let the connections that exist lose one side or one direction."""
        self._how, self._age = "half-closed", self._age + 1

    def pause(self, seconds: float) -> None:
        """Pass on nothing for a while, and nothing of new connections either."""
        self._flows.clear()
        self._ends_early.wait(seconds)
        self._flows.set()

    def end_pause(self) -> None:
        """Pass everything on again."""
        self._ends_early.set()

    def _pump(self, client: socket.socket, server: socket.socket) -> None:
        age = self._age
        selector = selectors.DefaultSelector()
        other = {client: server, server: client}
        for side in other:
            selector.register(side, selectors.EVENT_READ)
        while self._age == age:
            for key, _ in selector.select(0.1):
                data = key.fileobj.recv(65536)
                self._flows.wait()
                if not data:
                    return
                if self._age == age:
                    other[key.fileobj].sendall(data)
        self._strike(client, server)

    def _strike(self, client: socket.socket, server: socket.socket) -> None:
        """Do to a connection what the suite asked for, and hold on to what is left of it.

        The server ends its side when its keepalives, for which we ask, have had no answer; without
        that the sessions of a few strikes would be all that it has.
        """
        self.struck += 1
        if self._how == "half-closed":
            if self.struck % 3 == 0:
                client.shutdown(socket.SHUT_WR)
            elif self.struck % 3 == 1:
                server.shutdown(socket.SHUT_WR)
            else:
                server.close()
        time.sleep(_SERVER_NOTICES_S)
        server.close()
        threading.Event().wait()


class Standstill:
    """Finds the longest time in which executions ran and none ended, nor was one accepted."""

    def __init__(self, server: Postgres) -> None:
        """Nothing is watched yet."""
        self.longest_s = 0.0
        self._server = server
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        """Watch, on a connection that does not go through the proxy."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Watch no longer."""
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        with psycopg.connect(self._server.url, autocommit=True) as own:
            seen: tuple[object, ...] = ()
            since = time.monotonic()
            while not self._ended.wait(0.2):
                counts = own.execute(_COUNTS).fetchall()[0]
                if counts != seen or not counts[1]:
                    seen, since = counts, time.monotonic()
                self.longest_s = max(self.longest_s, time.monotonic() - since)


def blackholed(folder: Path, server: Postgres | None, size: Size) -> Report:
    """Drop all that is sent on the connections that exist, again and again."""
    return _silence("blackholed", folder, server, size, lambda proxy, _: proxy.blackhole())


def half_closed(folder: Path, server: Postgres | None, size: Size) -> Report:
    """Close one side or one direction of the connections that exist, again and again."""
    return _silence("half-closed", folder, server, size, lambda proxy, _: proxy.half_close())


def frozen(folder: Path, server: Postgres | None, size: Size) -> Report:
    """Stop sessions of the server, and in turn everything between it and its clients."""
    assert server is not None
    dice = random.Random(size.seed)

    def strike(proxy: SilentProxy, turn: int) -> None:
        if turn % 2:
            proxy.pause(_PAUSED_S)
            return
        pids = [pid for (pid,) in server.ask(f"{SESSIONS} AND application_name <> ''")]
        chosen = dice.sample(pids, min(3, len(pids)))
        _signal(chosen, signal.SIGSTOP)
        threading.Timer(_FROZEN_S, _signal, (chosen, signal.SIGCONT)).start()

    return _silence("frozen", folder, server, size, strike)


def _signal(pids: list[int], number: signal.Signals) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def _silence(
    check: str,
    folder: Path,
    server: Postgres | None,
    size: Size,
    strike: Callable[[SilentProxy, int], None],
) -> Report:
    assert server is not None
    report = Report(check, size.seed)
    proxy = SilentProxy(server.socket)
    yard = begin(folder, server, size, url=proxy.url)
    load = Load(yard)
    load.work()
    with Standstill(server) as standstill:
        starter = load.begin(size.n, size.per_s)
        for turn in range(size.faults):
            time.sleep(size.n / size.per_s / (size.faults + 1))
            strike(proxy, turn)
        starter.join()
        close(yard, load, report)
    report.facts |= {"strikes": size.faults, "connections": proxy.struck}
    report.facts["standstill_s"] = round(standstill.longest_s, 1)
    longest = max(standstill.longest_s, float(report.facts.get("max_s", 0.0)))
    if longest >= LONGEST_S:
        report.violations.append(f"work stood still for {longest:.1f} s")
    return report
