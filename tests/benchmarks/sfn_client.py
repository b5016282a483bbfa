"""A client of Step Functions that is light enough not to be what a benchmark measures.

It speaks HTTP/1.1 over kept connections in one event loop, signs each call (Signature Version 4)
and reads answers with msgspec. Every server is measured with the same client.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import time
import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

import msgspec

REGION = "us-east-1"
ROLE = "arn:aws:iam::123456789012:role/benchmark"
_SIGNED = "content-type;host;x-amz-date;x-amz-target"
_KIND = "application/x-amz-json-1.0"
_HEAD_END = b"\r\n\r\n"
_OK, _TRY_AGAIN = 200, 503
_PAUSE_S = 0.1

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class CallFailed(Exception):
    """A server answered a call with an error."""


@dataclass
class SigningClient:
    """Calls one endpoint with one access key.

    ``attempts``: how often it makes a call that is answered with 503, as SDKs do: at first after a
    tenth of a second, then after twice as long each time.
    """

    endpoint: str
    key_id: str = "test"
    secret: str = "test"
    attempts: int = 5
    _kept: list[Connection] = field(default_factory=list)
    _signing_keys: dict[str, bytes] = field(default_factory=dict)

    async def call(self, action: str, **params: Any) -> Any:
        """Return the answer of an action; raise ``CallFailed``."""
        body = json.dumps(params).encode()
        for attempt in range(self.attempts):
            status, data = await self._answer(action, body)
            if status != _TRY_AGAIN or attempt == self.attempts - 1:
                break
            await asyncio.sleep(_PAUSE_S * 2**attempt)
        if status != _OK:
            raise CallFailed(f"{action}: {status} {data[:300]!r}")
        return msgspec.json.decode(data or b"{}")

    async def _answer(self, action: str, body: bytes) -> tuple[int, bytes]:
        try:
            return await self._exchange(await self._connection(), action, body)
        except (asyncio.IncompleteReadError, ConnectionError):  # it was kept for too long
            self._kept.clear()
            return await self._exchange(await self._connection(), action, body)

    async def create_machine(self, definition: dict[str, Any]) -> str:
        """Create a state machine of a new name and return its ARN."""
        machine = await self.call(
            "CreateStateMachine",
            name=f"bench-{uuid.uuid4().hex[:10]}",
            definition=json.dumps(definition),
            roleArn=ROLE,
        )
        return str(machine["stateMachineArn"])

    async def run(
        self, machine: str, *, pause_s: float, text: str = "{}", limit_s: float = 120
    ) -> str:
        """Start an execution, ask until it has succeeded, and return its ARN."""
        started = await self.call("StartExecution", stateMachineArn=machine, input=text)
        deadline = time.monotonic() + limit_s
        while True:
            execution = await self.call("DescribeExecution", executionArn=started["executionArn"])
            if execution["status"] == "SUCCEEDED":
                return str(started["executionArn"])
            if execution["status"] != "RUNNING" or time.monotonic() > deadline:
                raise CallFailed(f"an execution is {execution['status']}, wanted SUCCEEDED")
            await asyncio.sleep(pause_s)

    # -- HTTP --------------------------------------------------------------------------------------

    async def _connection(self) -> Connection:
        if self._kept:
            return self._kept.pop()
        address = urlsplit(self.endpoint)
        return await asyncio.open_connection(address.hostname, address.port, limit=1 << 24)

    async def _exchange(self, line: Connection, action: str, body: bytes) -> tuple[int, bytes]:
        reader, writer = line
        writer.write(self._head(action, body) + body)
        head = (await reader.readuntil(_HEAD_END)).decode("latin-1").lower()
        data = await _read_body(reader, head)
        if "connection: close" in head:
            writer.close()
        else:
            self._kept.append(line)
        return int(head.split(maxsplit=2)[1]), data

    def _head(self, action: str, body: bytes) -> bytes:
        """Return request line and headers, signed."""
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
        host, target = urlsplit(self.endpoint).netloc, f"AWSStepFunctions.{action}"
        scope = f"{stamp[:8]}/{REGION}/states/aws4_request"
        canonical = (
            f"POST\n/\n\ncontent-type:{_KIND}\nhost:{host}\nx-amz-date:{stamp}\n"
            f"x-amz-target:{target}\n\n{_SIGNED}\n{hashlib.sha256(body).hexdigest()}"
        )
        digest = hashlib.sha256(canonical.encode()).hexdigest()
        text = f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{digest}"
        signature = hmac.new(self._signing_key(scope), text.encode(), "sha256").hexdigest()
        return (
            f"POST / HTTP/1.1\r\nHost: {host}\r\nContent-Type: {_KIND}\r\nX-Amz-Date: {stamp}\r\n"
            f"X-Amz-Target: {target}\r\nContent-Length: {len(body)}\r\n"
            f"Authorization: AWS4-HMAC-SHA256 Credential={self.key_id}/{scope}, "
            f"SignedHeaders={_SIGNED}, Signature={signature}\r\n\r\n"
        ).encode()

    def _signing_key(self, scope: str) -> bytes:
        if scope not in self._signing_keys:
            key = f"AWS4{self.secret}".encode()
            for part in scope.split("/"):
                key = hmac.new(key, part.encode(), "sha256").digest()
            self._signing_keys[scope] = key
        return self._signing_keys[scope]


async def _read_body(reader: asyncio.StreamReader, head: str) -> bytes:
    """Return the body of an answer. ``head``: in lower case."""
    if "transfer-encoding: chunked" not in head:
        length = head.partition("content-length:")[2].partition("\r\n")[0]
        return await reader.readexactly(int(length))
    data = b""
    while size := int((await reader.readline()).partition(b";")[0], 16):
        data += await reader.readexactly(size)
        await reader.readline()
    await reader.readline()
    return data
