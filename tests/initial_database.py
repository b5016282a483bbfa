"""A migrated SQLite database that the servers of tests begin with.

``up`` migrates an empty database in most of a second of processor time. A run of the tests starts
some sixty servers, so the first of them makes the file, and each server begins with a copy.
``tests/acceptance/test_up.py`` starts without one, as people do.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests import run_folder

_ROOT = Path(__file__).parent.parent
_FILE = "stateyard.sqlite3"


def copy_to(data: Path) -> None:
    """Put the file into a data folder that has no database yet; make the folder."""
    if (data / _FILE).exists():
        return
    data.mkdir(mode=0o700, parents=True, exist_ok=True)
    shutil.copy(_migrated(), data / _FILE)


def _migrated() -> Path:
    """Return the file, which the first of the run's processes has made."""
    folder = run_folder.begin() / "initial-database"
    ready = folder / "ready.sqlite3"
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not ready.exists():
            folder.mkdir(mode=0o700, exist_ok=True)
            environment = {
                **os.environ,
                "STATEYARD_DATA": str(folder),
                "STATEYARD_DATABASE_URL": "",
            }
            command = [sys.executable, "manage.py", "migrate", "--verbosity=0"]
            subprocess.run(command, cwd=_ROOT, env=environment, check=True)
            (folder / _FILE).rename(ready)  # the last connection has emptied the log
    return ready
