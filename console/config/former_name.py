"""Read settings and tags under the former name of the product, Stepyard, for one release.

Environment variables (``STEPYARD_…``), tags (``stepyard:…``), the client profile, the default data
folder and its database file still count. Each use is reported once a process, in one line. The
release after 0.3.0 deletes this module and the calls into it.

Four texts keep the former name, because stored data depends on them: the derivation of keys
(``data_folder``), the fingerprint of a database (``db.identity``), the salts of signed links
(``store.people``), and the names of queue jobs and notifications in PostgreSQL (``worker``).
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

FORMER, NAME = "stepyard", "stateyard"
DATABASE_FILE = f"{FORMER}.sqlite3"
HEADERS = {
    "X-Stateyard-Signature": "X-Stepyard-Signature",
    "X-Stateyard-Event-Id": "X-Stepyard-Event-Id",
    "Stateyard-Idempotency-Key": "Stepyard-Idempotency-Key",
}
"""Header of a request that this server sends -> the former header, sent beside it."""
_VARIABLE = f"{FORMER.upper()}_"
_TAG = f"{FORMER}:"

_uses: list[str] = []
_reported: set[str] = set()


def adopt_variables() -> None:
    """Rename ``STEPYARD_X`` to ``STATEYARD_X`` in the environment; a variable of today wins.

    The former variables are deleted: child processes report nothing, and no function gets them.
    """
    names = sorted(name for name in os.environ if name.startswith(_VARIABLE))
    for name in names:
        value = os.environ.pop(name)
        os.environ.setdefault(f"{NAME.upper()}_{name.removeprefix(_VARIABLE)}", value)
    if names:
        _uses.append(f"the variables {', '.join(names)}: rename them to {NAME.upper()}_…")


def data_folder(folder: Path) -> Path:
    """Return the default data folder, or the former default where only that exists."""
    former = folder.with_name(FORMER)
    if folder.exists() or not former.is_dir():
        return folder
    _uses.append(f"the data folder {former}: stop the server and rename it to {folder}")
    return former


def database_file(path: Path) -> Path:
    """Return the SQLite file of a data folder, or the former file where only that exists."""
    former = path.with_name(DATABASE_FILE)
    return former if former.exists() and not path.exists() else path


def report_uses() -> None:
    """Log what the settings took from the former name, in one line."""
    if _uses:
        report("; ".join(_uses))
        _uses.clear()


def report(use: str) -> None:
    """Log one use of the former name."""
    import structlog  # a command of a client starts without it

    structlog.get_logger(__name__).warning(_line(), former=use)


def print_uses() -> None:
    """Print the same line to stderr, for commands that have no log."""
    if _uses:
        sys.stderr.write(f"{NAME}: {_line()}: {'; '.join(_uses)}\n")
        _uses.clear()


def _line() -> str:
    return "Stepyard is called Stateyard now; the former names are read until the next release"


# -- tags ------------------------------------------------------------------------------------------


def tag_keys(keys: Iterable[str]) -> list[str]:
    """Return tag keys together with their former spelling."""
    return [spelling for key in keys for spelling in (key, former_tag(key))]


def former_tag(key: str) -> str:
    """Return ``stepyard:x`` for ``stateyard:x``."""
    return key.replace(f"{NAME}:", _TAG, 1)


def current_tag(key: str) -> str:
    """Return ``stateyard:x`` for ``stepyard:x``; any other key as it is. Report the former key."""
    if not key.startswith(_TAG):
        return key
    current = key.replace(_TAG, f"{NAME}:", 1)
    if key not in _reported:
        _reported.add(key)
        report(f"the tag {key}: rename it to {current}")
    return current


def current_tags(tags: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return tags by their current key; a tag with the current key wins."""
    pairs = sorted(tags, key=lambda tag: not tag[0].startswith(_TAG))
    return {current_tag(key): value for key, value in pairs}
