"""``manage.py member``: gives a person a role, with an access key if wanted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core.management.base import CommandError

from console import access
from console.config.client_profile import profile_text
from console.db.audit import Actor
from console.errors import ServiceError
from console.management.addresses import stored_address
from console.management.base import DataFolderCommand, WrongUse
from console.models import Project, Role
from console.store.people import people

if TYPE_CHECKING:
    from argparse import ArgumentParser

_ACTOR = Actor("manage.py")


class Command(DataFolderCommand):
    """Adds, changes or removes a member; prints a new key once."""

    help = "Give a person or service account a role in a project."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add person, role and project."""
        parser.add_argument("name", help="the person's or service account's name")
        parser.add_argument("--role", choices=Role.values, default="viewer")
        parser.add_argument("--project", default="default")
        parser.add_argument(
            "--key", action="store_true", help="make an access key and print its profile"
        )
        parser.add_argument("--address", default="", help="the server's address in the profile")
        parser.add_argument("--remove", action="store_true", help="end the membership")

    def handle(self, *args: Any, **options: Any) -> None:
        """Change the membership, or raise CommandError."""
        del args
        project = Project.objects.filter(name=options["project"]).first()
        if project is None:
            names = ", ".join(Project.objects.values_list("name", flat=True))
            raise WrongUse(f"--project: got {options['project']!r}, wanted one of: {names}")
        try:
            if options["remove"]:
                people.remove_member(project, options["name"], _ACTOR)
                self.stdout.write(f"{options['name']} is no member of {project.name} any more")
                return
            if options["key"]:
                access.check_not_archived(project)
            member = people.put_member(project, options["name"], options["role"], _ACTOR)
            self.stdout.write(f"{options['name']} is {member.role} of {project.name}")
            if options["key"]:
                key, secret = people.new_key(member.user, project, _ACTOR)
                address = (options["address"] or stored_address()).rstrip("/")
                region = settings.STATEYARD_REGION
                profile = profile_text(key.key_id, secret, address=address, region=region)
                self.stdout.write("\n" + profile)
        except ServiceError as error:
            raise CommandError(error.message) from None
