"""What does an operation get, and how does it answer later?"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from console.store import hints

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from concurrent.futures import Executor

    from console.access import Principal
    from console.models import Project
    from console.store.audit import Actor

    Receive = Callable[[], Awaitable[dict[str, Any]]]

_LOOK_AGAIN_S = 1.0


@dataclass(frozen=True, slots=True)
class Call:
    """One checked, authorised call. ``params``: as the service model has them."""

    action: str
    params: dict[str, Any]
    principal: Principal
    region: str
    actor: Actor

    @property
    def project(self) -> Project:
        """Return the caller's project."""
        return self.principal.project


@dataclass(frozen=True, slots=True)
class Later:
    """An answer to wait for without holding a thread.

    ``look``: returns the answer or None; called when ``topic`` is told, and each second in case a
    hint was lost. ``otherwise``: the answer after ``seconds``. ``undo``: called when the caller
    went away while the answer was found, so that it is not lost.
    """

    look: Callable[[], dict[str, Any] | None]
    topic: hints.Topic
    seconds: float
    otherwise: dict[str, Any]
    undo: Callable[[], object] | None = None

    async def wait(self, pool: Executor, receive: Receive | None = None) -> dict[str, Any]:
        """Wait for the answer. ``receive``: tells when the caller goes away; nobody waits then."""
        loop = asyncio.get_running_loop()
        told = asyncio.Event()
        gone = asyncio.create_task(_gone(receive, told))

        def tell(*_: object) -> None:
            loop.call_soon_threadsafe(told.set)

        end = hints.listen(self.topic, tell)
        deadline = loop.time() + self.seconds
        try:
            while loop.time() < deadline and not gone.done():
                told.clear()
                answer = await loop.run_in_executor(pool, self.look)
                if answer is not None:
                    await self._undo_if(gone, pool)
                    return answer
                await _either(told, min(_LOOK_AGAIN_S, deadline - loop.time()))
            return self.otherwise
        finally:
            gone.cancel()
            end()

    async def _undo_if(self, gone: asyncio.Task[None], pool: Executor) -> None:
        """Take the answer back if there is nobody to hear it."""
        await asyncio.sleep(0)  # what came in while we looked is heard now
        if self.undo is not None and gone.done():
            await asyncio.get_running_loop().run_in_executor(pool, self.undo)


async def _gone(receive: Receive | None, told: asyncio.Event) -> None:
    """Return when the caller has gone away, and wake who waits."""
    if receive is None:
        await asyncio.Event().wait()
        return
    while (await receive())["type"] != "http.disconnect":
        pass
    told.set()


async def _either(told: asyncio.Event, seconds: float) -> None:
    """Return when told, or after some time."""
    try:
        await asyncio.wait_for(told.wait(), max(seconds, 0))
    except TimeoutError:
        return


def seconds(ms: int) -> float:
    """Return epoch seconds of epoch milliseconds, as AWS answers times."""
    return ms / 1000


def present(**members: Any) -> dict[str, Any]:
    """Return the members that have a value: AWS leaves absent ones out."""
    return {name: value for name, value in members.items() if value is not None}
