"""``manage.py project``: creates, lists and renames projects."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any

from django.core.management.base import CommandError

from console.db.audit import Actor
from console.errors import ServiceError
from console.feature import has_feature
from console.features.projects import store
from console.management.base import DataFolderCommand

if TYPE_CHECKING:
    from argparse import ArgumentParser

_ACTOR = Actor("manage.py")


class Command(DataFolderCommand):
    """Runs one action on the projects of a server."""

    help = "Create, list and rename projects."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add a parser for each action."""
        actions = parser.add_subparsers(dest="act", required=True, metavar="ACTION")
        create = actions.add_parser("create", help="create a project with its first owner")
        create.add_argument("name", help="letters, digits and . - _")
        create.add_argument("--account", default="", help="12 digits (default: drawn)")
        create.add_argument("--owner", default="owner", help="the first owner (default: owner)")
        listing = actions.add_parser("list", help="list all projects")
        listing.add_argument("--json", action="store_true", help="print JSON")
        rename = actions.add_parser("rename", help="rename a project")
        rename.add_argument("name", help="the project's name")
        rename.add_argument("new_name", metavar="new-name", help="letters, digits and . - _")

    def handle(self, *args: Any, **options: Any) -> None:
        """Run the action, or say why it is refused."""
        del args
        if not has_feature("projects"):
            raise CommandError("STATEYARD_FEATURES leaves out the feature projects")
        try:
            getattr(self, f"_{options['act']}")(options)
        except ServiceError as error:
            raise CommandError(error.message) from None

    def _create(self, options: dict[str, Any]) -> None:
        name, owner = options["name"], options["owner"]
        project = store.create_project(name, options["account"], owner, _ACTOR)
        self.stdout.write(f"{project.name} has account {project.account_id} and owner {owner}")

    def _rename(self, options: dict[str, Any]) -> None:
        project = store.rename_project(options["name"], options["new_name"], _ACTOR)
        self.stdout.write(f"{options['name']} is now called {project.name}")

    def _list(self, options: dict[str, Any]) -> None:
        projects = store.list_projects()
        if options["json"]:
            rows = [dataclasses.asdict(project) for project in projects]
            self.stdout.write(json.dumps(rows, indent=2))
            return
        for project in projects:
            plural = "" if project.members == 1 else "s"
            self.stdout.write(
                f"{project.name:<24}{project.account_id}  {project.members} member{plural}"
            )
