"""``manage.py worker_health``: report whether the workers of this machine are healthy."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import CommandError

from console.management.base import DataFolderCommand
from console.worker import health_file


class Command(DataFolderCommand):
    """Exits with 0 if every worker process here has renewed its lease in time."""

    help = "Exit with 0 if the workers of this machine or container are well, else with 1."
    requires_system_checks: list[str] = []
    requires_migrations_checks = False

    def handle(self, *args: Any, **options: Any) -> None:
        """Read the workers' health files; print the problems."""
        del args, options
        ages = health_file.ages_s()
        if not ages:
            raise CommandError("no worker runs here, or none has taken its first lease yet")
        late = {pid: age for pid, age in ages.items() if age > settings.STATEYARD_LEASE_S}
        if late:
            workers = ", ".join(
                f"process {pid} for {age:.0f} s" for pid, age in sorted(late.items())
            )
            raise CommandError(
                f"a worker has not renewed its lease of {settings.STATEYARD_LEASE_S:g} s: {workers}"
            )
        self.stdout.write(f"{len(ages)} well")
