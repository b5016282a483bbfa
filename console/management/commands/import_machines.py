"""``manage.py import_machines``: creates or updates what ``export_machines`` printed."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from console import arns
from console.errors import ServiceError
from console.execution_rights import UNKNOWN
from console.models import Project, StateMachine
from console.store.db.audit import Actor
from console.store.machines import machines, tags

if TYPE_CHECKING:
    from argparse import ArgumentParser

_ACTOR = Actor("manage.py", acting_for=(UNKNOWN,))
_WANTED = ("name", "roleArn", "definition")


class Command(BaseCommand):
    """Reads a file or stdin; says of each machine what was done."""

    help = "Create or update state machines from what export_machines printed."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take the file and the project."""
        parser.add_argument("file", nargs="?", default="-", help="a JSON file (default: stdin)")
        parser.add_argument("--project", default="default")
        parser.add_argument("--data", metavar="DIR", help="the data folder")

    def handle(self, *args: Any, **options: Any) -> None:
        """Import them all; what is refused is told at the end."""
        del args
        project = Project.objects.filter(name=options["project"]).first()
        if project is None:
            raise CommandError(f"--project: got {options['project']!r}, which does not exist")
        refused = []
        for number, one in enumerate(_read(options["file"])):
            try:
                self.stdout.write(_put_machine(project, one, number))
            except ServiceError as error:
                refused.append(f"[{number}] {one.get('name')}: {error.message}")
        if refused:
            raise CommandError("\n".join(["not imported:", *refused]))


def _read(file: str) -> list[dict[str, Any]]:
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
        found = json.loads(text)
    except (OSError, ValueError) as error:
        raise CommandError(f"{file}: {error}") from None
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise CommandError(f"{file}: got no array of objects, wanted what export_machines printed")
    return found


def _put_machine(project: Project, one: dict[str, Any], number: int) -> str:
    for name in _WANTED:
        if not isinstance(one.get(name), str):
            raise CommandError(f"[{number}].{name}: got {one.get(name)!r}, wanted a text")
    region = one.get("region") or settings.STEPYARD_REGION
    arn = arns.state_machine_arn(region, project.account_id, one["name"])
    texts = {
        name: json.dumps(one[f"{name}Configuration"], sort_keys=True)
        for name in ("logging", "tracing", "encryption")
        if one.get(f"{name}Configuration")
    }
    given: dict[str, Any] = {"definition": one["definition"], "role_arn": one["roleArn"], **texts}
    there = StateMachine.objects.filter(arn=arn).first()
    if there is None:
        machines.create_machine(
            project,
            region,
            name=one["name"],
            type=one.get("type") or "STANDARD",
            actor=_ACTOR,
            **given,
        )
    else:
        machines.update_machine(there, actor=_ACTOR, **given)
    if one.get("tags"):
        tags.put_tags(arn, {tag["key"]: tag["value"] for tag in one["tags"]})
    return f"{'created' if there is None else 'updated'} {arn}"
