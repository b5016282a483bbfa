"""Cache of graph layouts in files of the data folder, shared by all processes.

A file holds Graphviz's layout of one definition, or a note that it exceeded the limits, and no text
of a user. A damaged or outdated file counts as missing, and the graph is laid out again. When the
folder exceeds its limit, the least recently used files are deleted.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.conf import settings

from console.web.graph.layout_pool import LayoutFailure

MOST_FILES = 1000
MOST_BYTES = 64 * 1024 * 1024
_FORMAT = 2
_TRY_AGAIN_MS = {LayoutFailure.TIME: 24 * 3600 * 1000, LayoutFailure.CRASH: 24 * 3600 * 1000} | {
    LayoutFailure.SLOW: 10 * 60 * 1000
}
"""How long a definition that was too much for Graphviz is not tried again."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The cached layout of a definition.

    ``groups``: SHA-256 of a group's DOT text -> its layout, so a group with changed sizes is laid
    out again. ``limit``: why there is no layout; ``until_ms``: expiry of that note.
    """

    groups: dict[str, dict[str, Any]] = field(default_factory=dict)
    limit: LayoutFailure | None = None
    until_ms: int = 0


def now_ms() -> int:
    """Return this host's time: the files are on it, and no database is needed to read them."""
    return int(time.time() * 1000)


def with_time_limit(reason: LayoutFailure) -> Layout:
    """Return the layout of a definition that has just exceeded Graphviz's limits."""
    return Layout(limit=reason, until_ms=now_ms() + _TRY_AGAIN_MS.get(reason, 0))


def layout_digest(text: str) -> str:
    """Return the SHA-256 of a text, which may have lone surrogates."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def read_layout(key: str) -> Layout | None:
    """Return the cached layout of a key, None if missing or expired."""
    path = _path(key)
    if path is None:
        return None
    try:
        written = path.read_text("ascii")
        os.utime(path)
    except (OSError, ValueError):
        return None
    layout = _parsed(written)
    if layout is None or (layout.limit is not None and layout.until_ms <= now_ms()):
        return None
    return layout


def _parsed(written: str) -> Layout | None:
    """Read a file's text: a line with the SHA-256 of the rest, which is JSON."""
    checksum, _, text = written.partition("\n")
    if layout_digest(text) != checksum:
        return None
    try:
        limit, until_ms, groups = json.loads(text)
        return Layout(dict(groups), LayoutFailure(limit) if limit else None, int(until_ms))
    except (TypeError, ValueError):  # of another version
        return None


def write_layout(key: str, layout: Layout) -> None:
    """Store a layout, unless the folder cannot be written."""
    path = _path(key)
    if path is None:
        return
    text = json.dumps([layout.limit or "", layout.until_ms, layout.groups], separators=(",", ":"))
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        # a draft of its own: two threads may write the same layout
        handle, draft = tempfile.mkstemp(dir=path.parent, prefix="draft-")
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(f"{layout_digest(text)}\n{text}")
        Path(draft).replace(path)
        _delete_oldest(path.parent)


def _path(key: str) -> Path | None:
    folder: Path | None = settings.STATEYARD_LAYOUTS
    return folder / f"{key}-{_FORMAT}" if folder is not None else None


def _delete_oldest(folder: Path) -> None:
    """Delete the least recently used files above the limit."""
    files = []
    for path in folder.iterdir():
        with contextlib.suppress(FileNotFoundError):  # another process removed it
            about = path.stat()
            files.append((about.st_mtime_ns, about.st_size, path))
    room = sum(size for _, size, _ in files) - MOST_BYTES
    surplus = len(files) - MOST_FILES
    for _, size, path in sorted(files):
        if room <= 0 and surplus <= 0:
            return
        path.unlink(missing_ok=True)
        room -= size
        surplus -= 1
