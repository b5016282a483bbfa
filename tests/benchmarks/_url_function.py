"""Serve a function at a URL that answers each request at once; print the port."""

from __future__ import annotations

import asyncio

_ANSWER = (
    b"HTTP/1.1 200 OK\r\nDate: Mon, 05 Jan 2026 00:00:00 GMT\r\nServer: test\r\n"
    b'Content-Type: application/json\r\nContent-Length: 9\r\n\r\n{"n": 12}'
)


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            length = head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]
            await reader.readexactly(int(length))
            writer.write(_ANSWER)
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def _serve() -> None:
    server = await asyncio.start_server(_answer, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    with asyncio.Runner() as runner:
        runner.run(_serve())
