"""Count what processes and PostgreSQL say to each other, between a socket of its own and theirs.

A statement is a message Execute or Query. A round trip ends with ReadyForQuery, or with the reply
to the beginning of a COPY: the process has waited for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
from typing import TYPE_CHECKING, Any, NamedTuple, Self

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

_SOCKET = ".s.PGSQL.5432"
_HEAD = 5  # a letter and the length of the rest, which counts itself
_STATEMENTS = frozenset(b"EQ")
_TRIPS = frozenset(b"ZG")


class Counted(NamedTuple):
    """How many statements and round trips there were."""

    statements: int
    trips: int


class WireCount:
    """A process between clients and a PostgreSQL: its socket lies in ``folder``."""

    def __init__(self, folder: Path, server: Path) -> None:
        """``server``: the folder of the socket of PostgreSQL."""
        self.folder = folder
        self._statements = multiprocessing.Value("q")
        self._trips = multiprocessing.Value("q")
        counts = (self._statements, self._trips)
        place = (folder / _SOCKET, server / _SOCKET)
        self._process = multiprocessing.Process(target=_serve, args=(*place, *counts), daemon=True)

    def __enter__(self) -> Self:
        """Begin to take connections."""
        self._process.start()
        while not (self.folder / _SOCKET).exists():
            self._process.join(0.01)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        """End, with all connections."""
        self._process.kill()
        self._process.join()

    def counted(self) -> Counted:
        """Return what was said until now."""
        return Counted(self._statements.value, self._trips.value)


def _serve(own: Path, server: Path, statements: Any, trips: Any) -> None:
    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_unix_connection(str(server))
        await asyncio.gather(
            _pump(reader, back, _STATEMENTS, statements, greeting=True),
            _pump(there, writer, _TRIPS, trips, greeting=False),
        )

    async def work() -> None:
        async with await asyncio.start_unix_server(pass_on, str(own)) as serving:
            await serving.serve_forever()

    with asyncio.Runner() as runner:
        runner.run(work())


async def _pump(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    letters: frozenset[int],
    count: Any,
    *,
    greeting: bool,
) -> None:
    """Pass bytes on and count messages by their letters; ``greeting``: the first one has none."""
    missing, head = 0, b""
    with contextlib.suppress(OSError):
        while data := await reader.read(262_144):
            writer.write(data)
            at = 0
            if greeting:
                at, greeting = int.from_bytes(data[:4], "big"), False
            while at < len(data):
                if missing:
                    took = min(missing, len(data) - at)
                    missing, at = missing - took, at + took
                    continue
                took = min(_HEAD - len(head), len(data) - at)
                head, at = head + data[at : at + took], at + took
                if len(head) == _HEAD:
                    count.value += head[0] in letters
                    missing, head = int.from_bytes(head[1:], "big") - 4, b""
            await writer.drain()
    writer.close()
