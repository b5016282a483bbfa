"""``manage.py import_machines``: create or update state machines from ``export_machines`` JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core.management.base import CommandError

from console import access, arns
from console.db.audit import Actor
from console.errors import ServiceError
from console.execution_rights import UNKNOWN
from console.management.base import DataFolderCommand, WrongUse, read_file
from console.models import Project, StateMachine
from console.store.machines import machines, tags

if TYPE_CHECKING:
    from argparse import ArgumentParser

_ACTOR = Actor("manage.py", acting_for=(UNKNOWN,))
_WANTED = ("name", "roleArn", "definition")


class Command(DataFolderCommand):
    """Reads a file or stdin; reports the result of each state machine."""

    help = "Create or update state machines from what export_machines printed."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add file and project."""
        parser.add_argument("file", nargs="?", default="-", help="a JSON file (default: stdin)")
        parser.add_argument("--project", default="default")

    def handle(self, *args: Any, **options: Any) -> None:
        """Import all state machines; list the refused ones at the end."""
        del args
        project = Project.objects.filter(name=options["project"]).first()
        if project is None:
            raise WrongUse(f"--project: got {options['project']!r}, which does not exist")
        if project.archived_ms is not None:
            raise CommandError(access.archive_words(project))
        refused = []
        for number, exported in enumerate(_read(options["file"])):
            try:
                self.stdout.write(_put_machine(project, exported))
            except ServiceError as error:
                refused.append(f"[{number}] {exported.get('name')}: {error.message}")
        if refused:
            raise CommandError("\n".join(["not imported:", *refused]))


def _read(file: str) -> list[dict[str, Any]]:
    try:
        exports = json.loads(read_file(file))
    except ValueError as error:
        raise WrongUse(f"{file}: {error}") from None
    if not isinstance(exports, list) or not all(isinstance(item, dict) for item in exports):
        raise WrongUse(f"{file}: got no array of objects, wanted what export_machines printed")
    for number, exported in enumerate(exports):
        for name in _WANTED:
            if not isinstance(exported.get(name), str):
                raise WrongUse(f"[{number}].{name}: got {exported.get(name)!r}, wanted a text")
    return exports


def _put_machine(project: Project, exported: dict[str, Any]) -> str:
    region = exported.get("region") or settings.STATEYARD_REGION
    arn = arns.state_machine_arn(region, project.account_id, exported["name"])
    texts = {
        name: json.dumps(exported[f"{name}Configuration"], sort_keys=True)
        for name in ("logging", "tracing", "encryption")
        if exported.get(f"{name}Configuration")
    }
    fields: dict[str, Any] = {
        "definition": exported["definition"],
        "role_arn": exported["roleArn"],
        **texts,
    }
    existing = StateMachine.objects.filter(arn=arn).first()
    if existing is None:
        machines.create_machine(
            project,
            region,
            name=exported["name"],
            type=exported.get("type") or "STANDARD",
            actor=_ACTOR,
            **fields,
        )
    else:
        machines.update_machine(existing, actor=_ACTOR, **fields)
    if exported.get("tags"):
        tags.put_tags(arn, {tag["key"]: tag["value"] for tag in exported["tags"]})
    return f"{'created' if existing is None else 'updated'} {arn}"
