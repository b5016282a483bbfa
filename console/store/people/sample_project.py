"""Create the sample project, separate from a team's own projects, with its state machines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings

from console.db.audit import Actor
from console.db.writer import write
from console.execution_rights import UNKNOWN
from console.models import Membership, Project, Role
from console.samples import MACHINES, PROJECT, sample_role
from console.store.machines import machines
from console.store.tasks import activities

if TYPE_CHECKING:
    from django.contrib.auth.models import User

SAMPLES_ACCOUNT = "111111111111"


def put_sample_project(owner: User) -> Project:
    """Return the sample project, created if missing, with its owner and machines."""

    def store() -> Project:
        project, _ = Project.objects.get_or_create(
            name=PROJECT, defaults={"account_id": SAMPLES_ACCOUNT}
        )
        Membership.objects.get_or_create(project=project, user=owner, defaults={"role": Role.OWNER})
        return project

    project = write(store)
    load_samples(project)  # also if an earlier start was killed halfway
    return project


def load_samples(project: Project) -> None:
    """Create the sample state machines and their activities."""
    actor = Actor("stateyard", acting_for=(UNKNOWN,))
    region = settings.STATEYARD_REGION
    for name in settings.STATEYARD_SAMPLE_FUNCTIONS:
        if name.startswith("activity:"):
            activities.create_activity(project, region, name.removeprefix("activity:"), actor)
    for sample in MACHINES:
        machines.create_machine(
            project,
            region,
            name=sample.name,
            definition=sample.definition,
            role_arn=sample_role(project.account_id),
            actor=actor,
        )
