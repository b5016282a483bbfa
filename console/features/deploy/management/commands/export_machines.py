"""``manage.py export_machines``: print state machines as JSON for ``import_machines``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from console.management.base import DataFolderCommand
from console.models import StateMachine, Tag

if TYPE_CHECKING:
    from argparse import ArgumentParser


class Command(DataFolderCommand):
    """Prints a JSON array of CreateStateMachine requests."""

    help = "Print the state machines of a project as JSON."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add names, project and region."""
        parser.add_argument("names", nargs="*", help="which ones (default: all)")
        parser.add_argument("--project", default="default")
        parser.add_argument("--region", default="", help="only those of this region")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print the machines as JSON."""
        del args
        machines = StateMachine.objects.select_related("definition").filter(
            project__name=options["project"], status="ACTIVE"
        )
        if options["names"]:
            machines = machines.filter(name__in=options["names"])
        if options["region"]:
            machines = machines.filter(region=options["region"])
        exported = [_exported(machine) for machine in machines.order_by("region", "name")]
        self.stdout.write(json.dumps(exported, indent=2, ensure_ascii=False))


def _exported(machine: StateMachine) -> dict[str, Any]:
    tags = Tag.objects.filter(arn=machine.arn).order_by("key")
    exported: dict[str, Any] = {
        "name": machine.name,
        "region": machine.region,
        "type": machine.type,
        "roleArn": machine.role_arn,
        "definition": machine.definition.text,
        "tags": [{"key": tag.key, "value": tag.value} for tag in tags],
    }
    for name in ("logging", "tracing", "encryption"):
        if getattr(machine, name):
            exported[f"{name}Configuration"] = json.loads(getattr(machine, name))
    return exported
