"""``manage.py reset_second_factor``: remove a person's second factor of sign-in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib.auth import get_user_model
from django.core.management.base import CommandError

from console.db.audit import Actor
from console.features.account import second_factor, sessions
from console.management.base import DataFolderCommand, WrongUse

if TYPE_CHECKING:
    from argparse import ArgumentParser


class Command(DataFolderCommand):
    """Removes the authenticator app and the recovery codes, and ends all sessions."""

    help = "Take somebody's second factor away, and end their sessions."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take the person."""
        parser.add_argument("name", help="the person's name")

    def handle(self, *args: Any, **options: Any) -> None:
        """Remove the second factor, or raise CommandError."""
        del args
        name, actor = options["name"], Actor("manage.py")
        user = get_user_model().objects.filter(username=name).first()
        if user is None:
            raise WrongUse(f"name: got {name!r}, wanted a person's name")
        if not second_factor.remove(user, actor, "ResetSecondFactor"):
            raise CommandError(f"{name} has no second factor")
        sessions.end_sessions(user, actor)
        self.stdout.write(f"{name} signs in without a second factor now; all sessions have ended")
