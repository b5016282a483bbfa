"""``manage.py up``: everything in one process - pages, API and engine - on an embedded database."""

from __future__ import annotations

import fcntl
import os
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError

from console import access
from console.data_folder import make_private, write_private
from console.management.processor import stay_on_one
from console.management.serving import allow, listen, load_samples, serve
from console.store import identity
from console.worker import Embedded

if TYPE_CHECKING:
    from argparse import ArgumentParser
    from pathlib import Path

    from console.models import AccessKey


class Command(BaseCommand):
    """Migrates, loads the samples once, prints the way in, and serves until Ctrl-C."""

    help = "Start pages, API and engine in one process on an embedded database."
    requires_system_checks: list[str] = []
    requires_migrations_checks = False

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take address and data folder."""
        parser.add_argument("--port", type=int, default=8083, help="0 picks a free one")
        parser.add_argument("--host", default="127.0.0.1", help="loopback unless said otherwise")
        parser.add_argument("--data", metavar="DIR", help="where everything is kept")
        parser.add_argument(
            "--insecure-accept-any-key",
            action="store_true",
            help="throw-away use: take calls with any key or none as the owner's; loopback only",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Start, serve, stop."""
        del args
        folder = settings.DATA_DIR
        _accept_any_key(options["host"], wanted=options["insecure_accept_any_key"])
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = _lock(folder)
        stay_on_one()  # before there are threads
        listener = listen(options["host"], options["port"])
        host, port = options["host"], listener.getsockname()[1]
        allow(host)
        call_command("migrate", verbosity=0, interactive=False)
        identity.claim()  # before anything is written with a wrong secret
        address = f"http://{'127.0.0.1' if host in ('0.0.0.0', '::') else host}:{port}"  # noqa: S104
        settings.STEPYARD_URL = settings.STEPYARD_URL or address
        self._prepare(folder, address)
        worker = Embedded()
        worker.start()
        try:
            serve(listener)
        finally:
            worker.stop()
            os.close(lock)
        self.stdout.write("stopped")

    def _prepare(self, folder: Path, address: str) -> None:
        """Make owner, key and samples at the first start; print how to get in."""
        user, project, _ = access.first_owner()
        credentials = folder / "credentials"
        if not credentials.exists():
            write_private(credentials, _profile(access.new_key(user, project)))
        if not (folder / "samples-loaded").exists():
            load_samples(project)
            (folder / "samples-loaded").touch()
        write_private(folder / "address", address + "\n")
        link = f"{address}/login/{access.new_login_link(user)}/"
        write_private(folder / "login-url", link + "\n")
        make_private(credentials)
        self.stdout.write(
            f"\nStepyard is at {address}\n\n"
            f"  Log in (once, within a day):  {link}\n"
            f"  Another link:                 python manage.py login_url --data {folder}\n"
            f"  AWS credentials, profile [stepyard]:  {credentials}\n\n"
            "Ctrl-C stops; nothing is lost.\n"
        )
        self.stdout.flush()


def _accept_any_key(host: str, *, wanted: bool) -> None:
    """Switch signatures off, on loopback only."""
    if wanted and host not in ("127.0.0.1", "::1", "localhost"):
        raise CommandError(
            f"--insecure-accept-any-key: got --host {host}, wanted a loopback address: whoever "
            "reaches the server could do everything"
        )
    settings.STEPYARD_ACCEPT_ANY_KEY = wanted


def _lock(folder: Path) -> int:
    """Take the data folder for this process alone."""
    handle = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise CommandError(
            f"--data {folder}: another `manage.py up` is using this folder; stop it, or choose "
            "another folder"
        ) from None
    return handle


def _profile(key: AccessKey) -> str:
    return (
        "[stepyard]\n"
        f"aws_access_key_id = {key.key_id}\n"
        f"aws_secret_access_key = {access.secret_for(key.key_id)}\n"
    )
