"""``manage.py project``: creates, lists, renames, archives and deletes projects."""

from __future__ import annotations

import dataclasses
import json
import time
from typing import TYPE_CHECKING, Any

from django.core.management.base import CommandError

from console.db.audit import Actor
from console.errors import ServiceError
from console.features.projects import deletion, store
from console.management.base import DataFolderCommand, WrongUse

if TYPE_CHECKING:
    from argparse import ArgumentParser

_ACTOR = Actor("manage.py")
_LOOK_AGAIN_S = 0.5  # while the server works on a deletion


class Command(DataFolderCommand):
    """Runs one action on the projects of a server."""

    _shown = ""
    help = "Create, list, rename, archive and delete projects."

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
        archive = actions.add_parser("archive", help="make a project read-only")
        unarchive = actions.add_parser("unarchive", help="let an archived project work again")
        delete = actions.add_parser("delete", help="delete an archived project with all it has")
        for action in (archive, unarchive, delete):
            action.add_argument("name", help="the project's name")
        delete.add_argument("--yes", default="", metavar="NAME", help="the name again, to confirm")

    def handle(self, *args: Any, **options: Any) -> None:
        """Run the action, or say why it is refused."""
        del args
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

    def _archive(self, options: dict[str, Any]) -> None:
        project = store.archive_project(options["name"], _ACTOR)
        self.stdout.write(f"{project.name} is archived: it is read-only, and nothing starts in it")

    def _unarchive(self, options: dict[str, Any]) -> None:
        project = store.unarchive_project(options["name"], _ACTOR)
        self.stdout.write(f"{project.name} is active again")

    def _delete(self, options: dict[str, Any]) -> None:
        """Delete a project here, or watch the server do it; an interrupted deletion continues."""
        name = options["name"]
        if options["yes"] != name:
            raise WrongUse(f"there is no undo: write --yes {name} to delete the project {name}")
        number = deletion.begin_deletion(name, name, _ACTOR).pk
        while not deletion.work_on_deletion(number, lambda: self._show_progress(name)):
            self._show_progress(name)
            time.sleep(_LOOK_AGAIN_S)
        ends = [entry.reason for entry in deletion.past_deletions() if entry.target == name]
        self.stdout.write(f"{name} is deleted: {ends[0].rpartition(', ')[2]}")

    def _show_progress(self, name: str) -> bool:
        progress = deletion.progress_of(name)
        if progress is not None and str(progress) != self._shown:
            self._shown = str(progress)
            begin, end = ("\r", "") if self.stderr.isatty() else ("", "\n")
            self.stderr.write(f"{begin}{name}: {progress}", ending=end)
            self.stderr.flush()
        return True

    def _list(self, options: dict[str, Any]) -> None:
        projects = store.list_projects()
        if options["json"]:
            rows = [dataclasses.asdict(project) for project in projects]
            self.stdout.write(json.dumps(rows, indent=2))
            return
        for project in projects:
            plural = "" if project.members == 1 else "s"
            members = f"{project.members} member{plural}"
            archived = "" if project.archived_ms is None else "  archived"
            self.stdout.write(f"{project.name:<24}{project.account_id}  {members}{archived}")
