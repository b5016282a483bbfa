"""The functions that the executions of the chaos suite call.

Each call appends a line to a file: the name of the function and its idempotency key.
"""

from __future__ import annotations

import json
import os
import signal
from typing import Any


def _note(name: str, context: Any, **more: Any) -> None:
    line = json.dumps({"function": name, "key": context.idempotency_key, **more}) + "\n"
    handle = os.open(os.environ["CHAOS_CALLS"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(handle, line.encode())
    os.close(handle)


def echo(event: Any, context: Any) -> Any:
    """Return what came in."""
    _note("echo", context)
    return event


def charge(event: Any, context: Any) -> Any:
    """Return what came in, and note whose call it is."""
    _note("charge", context, n=event["n"])
    return event


def flaky(event: Any, context: Any) -> Any:
    """Fail at the first attempt of a state."""
    _note("flaky", context)
    if event["attempt"] == 0:
        raise ConnectionError("not yet")
    return event["n"]


def broken(event: Any, context: Any) -> Any:
    """Fail always."""
    _note("broken", context)
    raise ValueError(event)


def deadly(event: Any, context: Any) -> Any:
    """Kill the process it is called in."""
    del event
    _note("deadly", context)
    os.kill(os.getpid(), signal.SIGKILL)
