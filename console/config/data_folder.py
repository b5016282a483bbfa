"""The data folder of this server: database, secrets, configuration; and keys derived from it."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import secrets
from pathlib import Path

from console.config import environment
from console.config.environment import SettingError

DATABASE_FILE, FORMER_DATABASE_FILE = "stateyard.sqlite3", "stepyard.sqlite3"
PRIVATE = 0o600
SHORTEST = 32
"""Minimum length of a chosen secret, in characters."""


def data_folder() -> Path:
    """Return the data folder: ``STATEYARD_DATA``, else the current user's default one.

    Raise ``SettingError`` if the default folder exists under its former name only.
    """
    chosen = environment.read_text("STATEYARD_DATA")
    if chosen:
        try:
            return Path(chosen).expanduser().resolve()
        except RuntimeError:  # ~somebody who is nobody
            raise SettingError("STATEYARD_DATA", repr(chosen), "a folder") from None
    home = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    folder = Path(home) / "stateyard"
    former = folder.with_name("stepyard")
    if former.is_dir() and not folder.exists():  # else an upgrade would begin with no data at all
        expected = f"its present name, {folder}: stop the server, rename it"
        raise SettingError(former, "the data folder of 0.2.0 or before", expected)
    return folder


def database_file(folder: Path) -> Path:
    """Return the SQLite file of a data folder; one made before 0.3.0 keeps its name."""
    former = folder / FORMER_DATABASE_FILE
    path = folder / DATABASE_FILE
    return former if former.exists() and not path.exists() else path


def master_secret(folder: Path) -> bytes:
    """Return the secret from which all others are derived; it is created at the first start.

    ``STATEYARD_SECRET`` (for several machines of a team) overrides the file ``secret`` (mode 0600).
    Raise ``SettingError`` for a weak one, because all access keys are derived from it.
    """
    secret = environment.read_text("STATEYARD_SECRET")
    if secret:
        if len(secret) < SHORTEST:
            raise SettingError(
                "STATEYARD_SECRET",
                f"{len(secret)} characters",
                f"{SHORTEST} or more: make one with openssl rand -hex 32",
            )
        return secret.encode()
    path = folder / "secret"
    try:
        if not path.exists():
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            write_private(path, secrets.token_hex(32) + "\n")
        make_private(path)
        stored = path.read_bytes().strip()
    except OSError as error:
        expected = "a folder that can be written, by --data or STATEYARD_DATA"
        raise SettingError(error.filename or folder, error.strerror, expected) from None
    if len(stored) < SHORTEST:
        raise SettingError(path, f"{len(stored)} bytes", f"{SHORTEST} or more, as in a backup")
    return stored


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read, atomically."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, PRIVATE)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    draft.replace(path)


def make_private(*paths: Path) -> None:
    """Restrict existing files to their owner, if this process may.

    A folder that existed before, and files of earlier releases, may be readable by others.
    """
    for path in paths:
        with contextlib.suppress(OSError):
            if path.stat().st_mode & 0o077:
                path.chmod(PRIVATE)


def database_files(path: Path) -> tuple[Path, ...]:
    """Return the files of a SQLite database: main file, write-ahead log, shared memory."""
    return (path, *(path.with_name(f"{path.name}-{more}") for more in ("wal", "shm")))


def derive_key(master: bytes, purpose: str) -> bytes:
    """Return the key for one purpose; keys of different purposes are independent.

    The label keeps the product's former name: another label would void every key in use.
    """
    return hmac.new(master, f"stepyard/{purpose}".encode(), hashlib.sha256).digest()
