"""The data folder: the place of all files of this server, and the source of its secrets."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import secrets
from pathlib import Path

from console.config import environment, former_name
from console.config.environment import SettingError

DATABASE_FILE = "stateyard.sqlite3"
PRIVATE = 0o600
SHORTEST = 32
"""Characters of a secret that somebody chose."""


def data_folder() -> Path:
    """Return the data folder: ``STATEYARD_DATA``, else the user's own data folder."""
    chosen = environment.read_text("STATEYARD_DATA")
    if chosen:
        try:
            return Path(chosen).expanduser().resolve()
        except RuntimeError:  # ~somebody who is nobody
            raise SettingError("STATEYARD_DATA", repr(chosen), "a folder") from None
    home = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    return former_name.data_folder(Path(home) / "stateyard")


def master_secret(folder: Path) -> bytes:
    """Return the one secret all others are derived from, made at the first start.

    ``STATEYARD_SECRET`` (for many machines of a team) comes before the file ``secret`` (mode 0600).
    Raise ``SettingError`` on one that can be guessed: all access keys follow from it.
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
    """Write a file that only its owner can read, whole or not at all."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, PRIVATE)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    draft.replace(path)


def make_private(*paths: Path) -> None:
    """Let only their owner read files, as far as they are there and ours to change.

    A folder that existed before may let others in, and so did what an earlier version wrote.
    """
    for path in paths:
        with contextlib.suppress(OSError):
            if path.stat().st_mode & 0o077:
                path.chmod(PRIVATE)


def database_files(path: Path) -> tuple[Path, ...]:
    """Return the files of an SQLite database: the main file, its log and its shared memory."""
    return (path, *(path.with_name(f"{path.name}-{more}") for more in ("wal", "shm")))


def derive_key(master: bytes, purpose: str) -> bytes:
    """Return the key for one purpose; keys of different purposes say nothing of each other.

    The label keeps the product's former name: another label would void every key in use.
    """
    return hmac.new(master, f"stepyard/{purpose}".encode(), hashlib.sha256).digest()
