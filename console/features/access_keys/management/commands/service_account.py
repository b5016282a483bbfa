"""``manage.py service_account``: creates, lists, changes and deletes service accounts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from console.db.audit import Actor
from console.features.access_keys import accounts
from console.management.base import ProjectCommand

if TYPE_CHECKING:
    from argparse import ArgumentParser

    from console.models import Project

_ACTOR = Actor("manage.py")


class Command(ProjectCommand):
    """Runs one action on the service accounts of a project."""

    help = "Create, list, change and delete service accounts."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add a parser for each action."""
        actions = parser.add_subparsers(dest="act", required=True, metavar="ACTION")
        create = actions.add_parser("create", help="create a service account, without a key")
        change = actions.add_parser("change", help="change the role and the description")
        listing = actions.add_parser("list", help="list the service accounts")
        delete = actions.add_parser("delete", help="delete a service account with its keys")
        for action in (create, change, delete):
            action.add_argument("name", help="letters, digits and . - _")
        for action in (create, change):
            action.add_argument("--role", choices=accounts.ROLES, default="operator")
            action.add_argument("--description", default="", help="what the program does")
        for action in (create, change, listing, delete):
            action.add_argument("--project", default="default")

    def _create(self, project: Project, options: dict[str, Any]) -> None:
        account_fields = options["name"], options["role"], options["description"]
        account = accounts.create_account(project, *account_fields, _ACTOR)
        self.stdout.write(f"{account.user.get_username()} is {options['role']} of {project.name}")

    def _change(self, project: Project, options: dict[str, Any]) -> None:
        account_fields = options["name"], options["role"], options["description"]
        accounts.change_account(project, *account_fields, _ACTOR)
        self.stdout.write(f"{options['name']} is {options['role']} of {project.name}")

    def _delete(self, project: Project, options: dict[str, Any]) -> None:
        accounts.delete_account(project, options["name"], _ACTOR)
        self.stdout.write(f"{options['name']} is deleted with its keys")

    def _list(self, project: Project, options: dict[str, Any]) -> None:
        del options
        for account in accounts.list_accounts(project):
            plural = "" if account.keys == 1 else "s"
            line = f"{account.username:<40}{account.role:<10}{account.keys} key{plural}"
            self.stdout.write(f"{line}  {account.description}")
