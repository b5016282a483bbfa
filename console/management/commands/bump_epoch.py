"""``manage.py bump_epoch``: after a database restore, stop processes that remember newer data."""

from __future__ import annotations

from typing import Any

from console.db import epoch
from console.management.base import DataFolderCommand


class Command(DataFolderCommand):
    """Begins a new epoch; workers of older epochs write nothing more and end."""

    help = "Run once after a restore, before workers start: older processes can write no steps."

    def handle(self, *args: Any, **options: Any) -> None:
        """Begin a new epoch and print it."""
        del args, options
        number = epoch.begin_epoch()
        self.stdout.write(f"epoch {number} has begun; workers of older ones end by themselves")
