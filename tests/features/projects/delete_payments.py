"""Delete a project of 300 executions by the command, in batches of 20; made if it is not there."""

from __future__ import annotations

import django

django.setup()

from django.core.management import call_command  # noqa: E402 - models need Django to be set up

from console import access  # noqa: E402 - as above
from console.db.audit import Actor  # noqa: E402 - as above
from console.features.projects import deletion, store  # noqa: E402 - as above
from console.models import Execution, Project  # noqa: E402 - as above
from console.store.executions import retention  # noqa: E402 - as above
from tests.console.store.helpers import PASS, create, start  # noqa: E402 - as above

BY = Actor("manage.py")


def main() -> None:
    """Delete it."""
    retention.BATCH = 20
    deletion.LEASE_MS = 1_000
    if not Project.objects.filter(name="payments").exists():
        owner, _, _ = access.first_owner()
        project = store.create_project("payments", "222222222222", owner.get_username(), BY)
        machine = create(project, PASS)
        for number in range(300):
            start(machine, name=f"x{number}")
        store.archive_project("payments", BY)
    call_command("project", "delete", "payments", "--yes", "payments")
    print(Execution.objects.filter(name__startswith="x").count(), "left")  # noqa: T201 - its answer


main()
