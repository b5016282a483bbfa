"""All connections that wait are taken at once, and each is served as any other."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
import uvicorn

from console.server.serving import MOST_A_TURN, make_protocol_class
from tests.waiting import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Sequence

_CALL = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
_CLIENTS = 300
uvloop = pytest.importorskip("uvloop")  # which does not run everywhere


async def _app(_scope: Any, _receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b""})


@pytest.fixture
def listener() -> Any:
    """Return a socket that listens."""
    with socket.create_server(("127.0.0.1", 0), backlog=2 * _CLIENTS) as listener:
        listener.setblocking(False)
        yield listener


def test_a_crowd_is_taken_in_a_few_turns(listener: socket.socket) -> None:
    """One connection a turn of the loop: a crowd that keeps the loop busy holds the others up."""
    with contextlib.ExitStack() as stack:
        clients = [
            stack.enter_context(socket.create_connection(listener.getsockname(), PATIENCE_S))
            for _ in range(_CLIENTS)
        ]
        for client in clients:
            client.sendall(_CALL)
        with ThreadPoolExecutor(1) as thread:  # this one may have a loop, of the browser's driver
            serving = thread.submit(lambda: uvloop.run(_serve(listener, clients, turns=20)))
            taken, sent_at_once, answers = serving.result()
    assert taken[-1] == _CLIENTS
    assert max(after - before for before, after in pairwise(taken)) <= MOST_A_TURN + 1
    assert sent_at_once
    assert all(answer.startswith(b"HTTP/1.1 200 ") for answer in answers)


async def _serve(
    listener: socket.socket, clients: Sequence[socket.socket], turns: int
) -> tuple[list[int], bool, list[bytes]]:
    """Answer clients; return how many of them were taken after each of the loop's first turns.

    And whether small answers do not wait for the acknowledgement of earlier ones, and the answers.
    """
    protocol = make_protocol_class(listener)
    config = uvicorn.Config(_app, http=protocol, ws="none", lifespan="off")
    config.load()
    state = uvicorn.Server(config).server_state
    server = await asyncio.get_running_loop().create_server(
        partial(protocol, config, state, {}), sock=listener
    )
    taken = [0]
    for _ in range(turns):
        await asyncio.sleep(0)
        taken.append(len(state.connections))
    lines = [connection.transport.get_extra_info("socket") for connection in state.connections]
    at_once = [bool(line.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)) for line in lines]
    answers = await asyncio.to_thread(lambda: [client.recv(65536) for client in clients])
    for connection in [*state.connections]:
        connection.transport.close()
    server.close()
    await server.wait_closed()
    return taken, all(at_once), answers
