"""Health file of a worker process, touched each time the worker renews its lease.

``manage.py worker_health`` (for Docker or systemd) reads the file's age. It needs no database, and
a hung worker touches no file.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import structlog
from django.conf import settings

from console.store.tasks.workers import host_name, is_running

log = structlog.get_logger(__name__)


def _folder() -> Path:
    return Path(settings.DATA_DIR) / "worker-health"


def _prefix() -> str:
    return host_name().replace("/", "_") + "-"


def touch_file() -> None:
    """Mark the worker of this process as healthy; log an error if the file cannot be written."""
    try:
        _folder().mkdir(parents=True, exist_ok=True, mode=0o700)
        (_folder() / f"{_prefix()}{os.getpid()}").touch()
    except OSError as error:
        log.warning("the health file cannot be touched", folder=str(_folder()), why=error.strerror)


def remove_file() -> None:
    """Remove the health file of this process at the end of its worker."""
    (_folder() / f"{_prefix()}{os.getpid()}").unlink(missing_ok=True)


def ages_s() -> dict[int, float]:
    """Return for each worker process of this machine the seconds since it was healthy.

    Files of processes that are gone are removed.
    """
    ages: dict[int, float] = {}
    for path in _folder().glob(f"{_prefix()}*"):
        pid = int(path.name.removeprefix(_prefix()))
        if not is_running(pid):
            path.unlink(missing_ok=True)
            continue
        ages[pid] = max(0.0, time.time() - path.stat().st_mtime)
    return ages
