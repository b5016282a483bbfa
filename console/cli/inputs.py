"""Read the named inputs of a state machine from the server's own HTTP API."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

from console.cli.branches import call

if TYPE_CHECKING:
    from console.cli.connection import Connection

_ARN_PARTS = 7  # arn:aws:states:REGION:ACCOUNT:stateMachine:NAME, then a version or an alias


def named_input(connection: Connection, arn: str, name: str) -> str:
    """Return a state machine's named input; raise ConnectionRefused."""
    machine = ":".join(arn.split(":")[:_ARN_PARTS])
    query = urlencode({"machine": machine, "name": name}, quote_via=quote)
    return str(call(connection, "GET", f"/api/inputs?{query}", needs="named inputs")["input"])
