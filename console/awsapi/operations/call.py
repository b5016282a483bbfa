"""What does an operation get, and how does it answer later?"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from console.store import hints

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Executor

    from console.access import Principal
    from console.models import Project
    from console.store.audit import Actor

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
    hint was lost. ``otherwise``: the answer after ``seconds``.
    """

    look: Callable[[], dict[str, Any] | None]
    topic: hints.Topic
    seconds: float
    otherwise: dict[str, Any]

    async def wait(self, pool: Executor) -> dict[str, Any]:
        """Wait for the answer."""
        loop = asyncio.get_running_loop()
        told = asyncio.Event()

        def tell(*_: object) -> None:
            loop.call_soon_threadsafe(told.set)

        end = hints.listen(self.topic, tell)
        deadline = loop.time() + self.seconds
        try:
            while loop.time() < deadline:
                told.clear()
                answer = await loop.run_in_executor(pool, self.look)
                if answer is not None:
                    return answer
                await _either(told, min(_LOOK_AGAIN_S, deadline - loop.time()))
            return self.otherwise
        finally:
            end()


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
