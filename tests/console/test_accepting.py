"""All connections that wait are taken at once, and each is served as any other."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
import uvicorn
import uvloop

from console.management.accepting import protocol_of
from tests.waiting import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Sequence

_CALL = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
_CLIENTS = 300


async def _app(_scope: Any, _receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b""})


@pytest.fixture
def listener() -> Any:
    """Return a socket that listens."""
    with socket.create_server(("127.0.0.1", 0), backlog=2 * _CLIENTS) as found:
        found.setblocking(False)
        yield found


def test_a_crowd_is_taken_in_a_few_turns(listener: socket.socket) -> None:
    """One connection a turn of the loop: a crowd that keeps the loop busy holds the others up."""
    with contextlib.ExitStack() as stack:
        clients = [
            stack.enter_context(socket.create_connection(listener.getsockname(), PATIENCE_S))
            for _ in range(_CLIENTS)
        ]
        for client in clients:
            client.sendall(_CALL)
        taken, sent_at_once, answers = uvloop.run(_serve(listener, clients, turns=20))
    assert taken == _CLIENTS
    assert sent_at_once
    assert all(answer.startswith(b"HTTP/1.1 200 ") for answer in answers)


async def _serve(
    listener: socket.socket, clients: Sequence[socket.socket], turns: int
) -> tuple[int, bool, list[bytes]]:
    """Answer clients; return how many of them were taken in so many turns of the loop.

    And whether small answers do not wait for the acknowledgement of earlier ones, and the answers.
    """
    protocol = protocol_of(listener)
    config = uvicorn.Config(_app, http=protocol, ws="none", lifespan="off")
    config.load()
    state = uvicorn.Server(config).server_state
    server = await asyncio.get_running_loop().create_server(
        partial(protocol, config, state, {}), sock=listener
    )
    for _ in range(turns):
        await asyncio.sleep(0)
    taken = {*state.connections}
    lines = [one.transport.get_extra_info("socket") for one in taken]
    at_once = [bool(line.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)) for line in lines]
    answers = await asyncio.to_thread(lambda: [client.recv(65536) for client in clients])
    for one in [*state.connections]:
        one.transport.close()
    server.close()
    await server.wait_closed()
    return len(taken), all(at_once), answers
