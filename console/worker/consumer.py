"""Who takes the jobs of the team's queue?  PgQueuer's manager, on a thread with an event loop."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import asyncpg
import structlog
from django.db import connection
from pgqueuer.db import AsyncpgDriver
from pgqueuer.qm import QueueManager
from pgqueuer.queries import Queries

from console.store import hints
from console.worker.bus import HINT, STEP

if TYPE_CHECKING:
    from collections.abc import Callable

    from pgqueuer.models import Job

log = structlog.get_logger(__name__)
_BATCH = 10
_LOST_AFTER = timedelta(seconds=6)
"""A job whose worker has not been heard of for so long is given to another."""
_RETRY_S = 0.5


def address() -> dict[str, Any]:
    """Return the database's address as asyncpg wants it."""
    settings = connection.settings_dict
    found = {
        "host": settings["HOST"] or None,
        "port": int(settings["PORT"]) if settings["PORT"] else None,
        "user": settings["USER"] or None,
        "password": settings["PASSWORD"] or None,
        "database": settings["NAME"],
    }
    return {name: value for name, value in found.items() if value is not None}


def install() -> None:
    """Make PgQueuer's tables, or bring them up to date; several may call this at once."""

    async def work() -> None:
        own = await asyncpg.connect(**address())
        try:
            await Queries(AsyncpgDriver(own)).apply_upgrade()
        finally:
            await own.close()

    asyncio.run(work())


class Consumer:
    """Takes jobs while it runs: ``start``, then ``stop``."""

    def __init__(self, step: Callable[[int], None], threads: int) -> None:
        """``step``: steps an execution, on one of so many threads."""
        self._step = step
        self._pool = ThreadPoolExecutor(threads, "job")
        self._ended = threading.Event()
        self._manager: QueueManager | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="consumer", daemon=True)

    def start(self) -> None:
        """Begin to take jobs."""
        self._thread.start()

    def stop(self, seconds: float) -> None:
        """Take no more jobs and wait a little for those under way."""
        self._ended.set()
        with contextlib.suppress(RuntimeError):  # the loop has ended by itself
            self._loop.call_soon_threadsafe(self._shut)
        self._thread.join(seconds)
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _shut(self) -> None:
        if self._manager is not None:
            self._manager.shutdown.set()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._serve())
        finally:
            self._loop.close()

    async def _serve(self) -> None:
        """Take jobs; after an outage of the database begin anew."""
        while not self._ended.is_set():
            try:
                own = await asyncpg.connect(**address(), timeout=10)
                try:
                    await self._take_jobs(own)
                finally:
                    await own.close(timeout=1)
            except Exception as error:  # noqa: BLE001 - whatever it is, the sweeper works on
                if not self._ended.is_set():
                    log.warning(
                        "the queue is out of reach", error=f"{type(error).__name__} {error}"
                    )
                    await asyncio.sleep(_RETRY_S)

    async def _take_jobs(self, own: asyncpg.Connection[Any]) -> None:
        manager = QueueManager(Queries(AsyncpgDriver(own)))
        loop = asyncio.get_running_loop()

        @manager.entrypoint(STEP)
        async def step(job: Job) -> None:
            number = int((job.payload or b"0").decode())
            await loop.run_in_executor(self._pool, self._step, number)

        @manager.entrypoint(HINT)
        async def hint(job: Job) -> None:
            topic, what = json.loads((job.payload or b"[[],[]]").decode())
            hints.pass_on(tuple(topic), *what)

        self._manager = manager
        if self._ended.is_set():
            return
        await manager.run(
            dequeue_timeout=timedelta(seconds=5),
            batch_size=_BATCH,
            max_concurrent_tasks=2 * _BATCH,
            heartbeat_timeout=_LOST_AFTER,
            shutdown_on_listener_failure=True,
        )
