"""``manage.py login_url``: makes a one-time login link."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.contrib.auth import get_user_model

from console import access
from console.config.data_folder import write_private
from console.management.addresses import stored_address
from console.management.base import DataFolderCommand, WrongUse

if TYPE_CHECKING:
    from argparse import ArgumentParser


class Command(DataFolderCommand):
    """Prints the link and stores it in DATA/login-url."""

    help = "Make a one-time login link, valid for a day."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add user and server address."""
        parser.add_argument("--user", default="owner", help="who logs in (default: owner)")
        parser.add_argument("--address", default="", help="the server's address")

    def handle(self, *args: Any, **options: Any) -> None:
        """Create the link."""
        del args
        user = get_user_model().objects.filter(username=options["user"], is_active=True).first()
        if user is None or access.is_service_account(user):
            raise WrongUse(f"--user: got {options['user']!r}, wanted an active user's name")
        address = options["address"] or stored_address()
        url = f"{address}/login/{access.create_login_link(user)}/"
        write_private(settings.DATA_DIR / "login-url", url + "\n")
        self.stdout.write(url)
