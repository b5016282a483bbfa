"""``manage.py key``: creates, lists, limits, rotates, disables and deletes access keys."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from django.conf import settings

from console.config.client_profile import profile_text
from console.db import clock
from console.db.audit import Actor
from console.features.access_keys import limits, rotation
from console.features.access_keys.forms import end_of_day
from console.features.access_keys.key_scopes import read_scope
from console.management.addresses import stored_address
from console.management.base import ProjectCommand, WrongUse
from console.models import AccessKey, Membership
from console.models.key_scope import EVERYTHING, ActionSet, KeyScope
from console.store.people import people
from console.web.core.formatting import iso_text

if TYPE_CHECKING:
    from argparse import ArgumentParser

    from console.models import Project

_ACTOR = Actor("manage.py")


class Command(ProjectCommand):
    """Runs one action on the access keys of a project."""

    help = "Create, list, limit, rotate, disable, enable and delete access keys."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add a parser for each action."""
        actions = parser.add_subparsers(dest="act", required=True, metavar="ACTION")
        create = actions.add_parser("create", help="create a key and print its profile")
        create.add_argument("member", help="the person or service account that owns the key")
        create.add_argument("--description", default="", help="what uses the key")
        create.add_argument("--until", default="", metavar="YYYY-MM-DD", help="its last day in UTC")
        create.add_argument(
            "--actions",
            default="all",
            help="all, read, start, or a list: StartExecution,events:PutEvents (default: all)",
        )
        create.add_argument(
            "--machines", default="", help="names and prefixes: refunds,orders-* (default: all)"
        )
        listing = actions.add_parser("list", help="list the keys")
        listing.add_argument("--json", action="store_true", help="print JSON")
        limit = actions.add_parser("limit", help="change what a key may do, and until when")
        limit.add_argument("--actions", help="all, read, start, or a list (default: as it is)")
        limit.add_argument(
            "--machines", help='names and prefixes, "" for all (default: as they are)'
        )
        limit.add_argument("--until", help='its last day in UTC, "" for none (default: as it is)')
        rotate = actions.add_parser("rotate", help="replace a key; both work for a day")
        disable = actions.add_parser("disable", help="let a key not be used")
        enable = actions.add_parser("enable", help="let a disabled key be used again")
        delete = actions.add_parser("delete", help="delete a key")
        for action in (limit, rotate, disable, enable, delete):
            action.add_argument("key", help="the id of the key")
        for action in (create, rotate):
            action.add_argument("--address", default="", help="the address in the profile")
        for action in (create, listing, limit, rotate, disable, enable, delete):
            action.add_argument("--project", default="default")

    def _create(self, project: Project, options: dict[str, Any]) -> None:
        name = options["member"]
        member = Membership.objects.filter(project=project, user__username=name).first()
        if member is None:
            raise WrongUse(f"{name!r} is no member of {project.name!r}")
        key, secret = people.new_key(
            *(member.user, project, _ACTOR, None, options["description"]),
            scope=_scope_of(options["actions"], options["machines"]),
            expires_ms=end_of_day(options["until"]),
        )
        self._print_profile(key, secret, options)

    def _limit(self, project: Project, options: dict[str, Any]) -> None:
        key = people.get_key(project, options["key"])
        scope, expires_ms = KeyScope.of_text(key.scope), key.expires_ms
        actions, machines = options["actions"], options["machines"]
        if actions is None:
            actions = scope.actions or ",".join(sorted(scope.listed))
        if machines is None:
            machines = ",".join(scope.machines)
        if options["until"] is not None:
            expires_ms = end_of_day(options["until"])
        changed = _scope_of(actions, machines)
        key = limits.change_limits(project, key.key_id, changed, expires_ms, _ACTOR)
        words = ", ".join(people.limits_in_words(key)) or "no limits"
        self.stdout.write(f"{key.key_id} has now: {words}")

    def _rotate(self, project: Project, options: dict[str, Any]) -> None:
        key, secret = rotation.rotate_key(project, options["key"], _ACTOR)
        self.stderr.write(f"{options['key']} works for another day; {key.key_id} replaces it")
        self._print_profile(key, secret, options)

    def _print_profile(self, key: AccessKey, secret: str, options: dict[str, Any]) -> None:
        address = (options["address"] or stored_address()).rstrip("/")
        region = settings.STATEYARD_REGION
        self.stdout.write(profile_text(key.key_id, secret, address=address, region=region))

    def _disable(self, project: Project, options: dict[str, Any]) -> None:
        people.switch_key(project, options["key"], on=False, actor=_ACTOR)
        self.stdout.write(f"{options['key']} is disabled")

    def _enable(self, project: Project, options: dict[str, Any]) -> None:
        people.switch_key(project, options["key"], on=True, actor=_ACTOR)
        self.stdout.write(f"{options['key']} is enabled")

    def _delete(self, project: Project, options: dict[str, Any]) -> None:
        people.delete_key(project, options["key"], _ACTOR)
        self.stdout.write(f"{options['key']} is deleted")

    def _list(self, project: Project, options: dict[str, Any]) -> None:
        keys = AccessKey.objects.filter(project=project).select_related("user")
        rows = [_members(key) for key in keys.order_by("user__username", "created_ms")]
        if options["json"]:
            self.stdout.write(json.dumps(rows, indent=2))
            return
        for row in rows:
            last_use = f"used {row['lastUsed']}" if row["lastUsed"] else "never used"
            ends = f"  until {row['expires']}" if row["expires"] else ""
            line = f"{row['key']}  {row['owner']:<20}{row['status']:<10}{last_use}{ends}"
            self.stdout.write(f"{line}  {row['scope']}")


def _scope_of(actions: str, machines: str) -> KeyScope:
    patterns = [pattern for pattern in machines.split(",") if pattern]
    if actions in {*ActionSet}:
        return read_scope(actions, [], patterns)
    return read_scope(None, [name for name in actions.split(",") if name], patterns)


def _members(key: AccessKey) -> dict[str, str]:
    """Return a key as a JSON object."""
    status = "disabled" if key.disabled_ms else "active"
    if key.expires_ms is not None and key.expires_ms <= clock.now_ms():
        status = "expired"
    scope = KeyScope.of_text(key.scope)
    return {
        "key": key.key_id,
        "owner": key.user.get_username(),
        "description": key.description,
        "status": status,
        "scope": "" if scope is EVERYTHING else scope.in_words(),
        "expires": _time_of(key.expires_ms),
        "lastUsed": _time_of(key.last_used_ms),
        "lastUsedFrom": key.last_used_from,
        "lastUsedClient": key.last_used_client,
        "replacedBy": key.replaced_by,
    }


def _time_of(moment_ms: int | None) -> str:
    return "" if moment_ms is None else iso_text(moment_ms)
