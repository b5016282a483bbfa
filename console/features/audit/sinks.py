"""Write lines of the audit stream to a sink (a file or a web address), and confirm their receipt.

A file is opened by name for each batch, so a tool may rotate or delete it at any time. A process
killed while writing leaves a partial line; the next batch then begins on a new line and repeats the
whole line. A web address confirms a batch with a status of 2xx.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from urllib.parse import unquote, urlsplit

from console.integrations import outbound
from console.integrations.redaction import without_url_secrets

try:
    import fcntl
except ImportError:  # on Windows
    fcntl = None  # type: ignore[assignment]

LIMIT_S = 15.0
"""Time limit of a web address for a batch."""
_MODE = 0o600
_FLAGS = os.O_RDWR | os.O_APPEND | os.O_CREAT
for _name in ("O_NONBLOCK", "O_CLOEXEC", "O_BINARY"):  # each system has some
    # without O_NONBLOCK, opening a pipe would wait for its reader
    _FLAGS |= getattr(os, _name, 0)
_TRIES = 5


class SinkError(Exception):
    """The sink did not accept the lines. The text has no secret."""


def send_lines(address: str, token: str, lines: bytes) -> None:
    """Send whole lines to a sink; raise ``SinkError`` if it may lack some of them.

    ``token``: for a web address; ``Bearer`` is added if it names no scheme.
    """
    if address.startswith("file:"):
        _append(Path(unquote(urlsplit(address).path)), lines)
    else:
        _post(address, token, lines)


def _append(path: Path, lines: bytes) -> None:
    try:
        # if somebody removes the file meanwhile, nobody will read it
        if not any(_append_to_named(path, lines) for _ in range(_TRIES)):
            raise SinkError(f"{path}: it is removed again and again")
    except OSError as error:
        raise SinkError(f"{path}: {error.strerror or type(error).__name__}") from None


def _append_to_named(path: Path, lines: bytes) -> bool:
    """Append lines and flush them to disk; return False if the file was deleted."""
    number = os.open(path, _FLAGS, _MODE)
    try:
        if not stat.S_ISREG(os.fstat(number).st_mode):
            raise SinkError(f"{path}: no regular file")
        _lock(path, number)
        before = os.fstat(number)
        if before.st_size:
            os.lseek(number, -1, os.SEEK_END)
            if os.read(number, 1) != b"\n":
                lines = b"\n" + lines
        rest = memoryview(lines)
        while rest:
            rest = rest[os.write(number, rest) :]
        os.fsync(number)
        if not before.st_size:
            _flush_folder(path.parent)
        return os.fstat(number).st_nlink > 0
    finally:
        os.close(number)


def _lock(path: Path, number: int) -> None:
    """Lock the file against other workers; the lock ends with the process."""
    if fcntl is None:
        return
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise SinkError(f"{path}: another process has locked it") from None


def _flush_folder(folder: Path) -> None:
    """Flush the folder, so that a new file survives a power failure, where supported."""
    if fcntl is None:
        return
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def _post(address: str, token: str, lines: bytes) -> None:
    headers = {"Content-Type": "application/x-ndjson", "User-Agent": "Stateyard"}
    if token:
        headers["Authorization"] = token if " " in token else f"Bearer {token}"
    try:
        answer = outbound.send_request("POST", address, LIMIT_S, content=lines, headers=headers)
    except (outbound.CallError, ValueError) as error:
        words = without_url_secrets(f"{type(error).__name__}: {error}", address)
        raise SinkError(words) from None
    if not answer.is_success:
        raise SinkError(f"the address answered {answer.status}")
