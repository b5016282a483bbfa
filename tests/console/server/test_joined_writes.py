"""The head of an answer goes out together with its body, and never waits for it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from console.server.connections import JoinedWrites
from tests.loops import looped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

HEAD = b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n"


class Recorder(asyncio.Transport):
    """Keeps what is written, write by write; a stream would join them."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[bytes] = []
        self.closed = False

    def write(self, data: Any) -> None:
        """Keep one write."""
        assert not self.closed
        self.writes.append(data)

    def writelines(self, parts: Iterable[Any]) -> None:
        """Keep what goes out by one system call."""
        self.write(b"".join(parts))

    def close(self) -> None:
        """Take no more."""
        self.closed = True

    def is_closing(self) -> bool:
        """Return whether it takes no more."""
        return self.closed


def written(act: Callable[[JoinedWrites], object]) -> list[bytes]:
    """Return what was written when the event loop has had its next turn."""

    async def run() -> list[bytes]:
        recorder = Recorder()
        act(JoinedWrites(recorder, asyncio.get_running_loop()))
        await asyncio.sleep(0)
        return recorder.writes

    return looped(run)


def test_head_and_body_are_one_write() -> None:
    """What a short answer is."""

    def act(transport: JoinedWrites) -> None:
        transport.write(HEAD)
        transport.write(b"body")
        transport.write(b"more")

    assert written(act) == [HEAD + b"body", b"more"]


def test_a_head_without_a_body_does_not_wait() -> None:
    """Of an answer that takes long, or of 100 Continue: nothing else is ever written here."""
    assert written(lambda transport: transport.write(HEAD)) == [HEAD]


def test_two_heads_keep_their_order() -> None:
    """100 Continue, and then the answer."""
    early = b"HTTP/1.1 100 Continue\r\n\r\n"

    def act(transport: JoinedWrites) -> None:
        transport.write(early)
        transport.write(HEAD)
        transport.write(b"body")

    assert b"".join(written(act)) == early + HEAD + b"body"


def test_closing_sends_what_was_kept() -> None:
    """A refusal may have a head only."""

    def act(transport: JoinedWrites) -> None:
        transport.write(HEAD)
        transport.close()

    assert written(act) == [HEAD]


def test_what_is_written_to_a_connection_that_is_gone_is_dropped() -> None:
    """Whoever answers cannot know it yet; uvloop's transports raise then."""

    def act(transport: JoinedWrites) -> None:
        transport.write(HEAD)
        transport._transport.close()
        transport.write(b"body")
        transport.write(HEAD)

    assert written(act) == []
