"""``stateyard up``: run pages, API and engine in one process on an embedded database (SQLite)."""

from __future__ import annotations

import os
import shlex
import sys
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core.files import locks
from django.core.management.base import CommandError
from django.http.request import validate_host

from console import access
from console.command_line import program
from console.config import local_options
from console.config.client_profile import (
    PROFILE,
    SAMPLES_PROFILE,
    UnreadableProfileError,
    complete_profile,
    profile_text,
)
from console.config.data_folder import PRIVATE, make_private, write_private
from console.config.function_options import general_options, read_entry
from console.config.version import server_version
from console.db import identity, ready_tables
from console.functions.cpu_affinity import stay_on_one
from console.management import capacity
from console.management.addresses import local_address, store_address
from console.management.base import DataFolderCommand, WrongUse
from console.management.team import reach_database
from console.server.serving import allow, let_in, listen, serve
from console.store.people.sample_project import put_sample_project
from console.worker import Embedded

if TYPE_CHECKING:
    from argparse import ArgumentParser
    from pathlib import Path
    from typing import IO

    from console.models import AccessKey


_DESCRIPTION = "made at the first start, in the credentials file of the data folder"
"""The description of the keys that a new server gives its owner."""


class Command(DataFolderCommand):
    """Migrates, loads the samples once, prints the login link, and serves until Ctrl-C."""

    help = "Start pages, API and engine in one process on an embedded database."
    requires_system_checks: list[str] = []
    requires_migrations_checks = False

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add address and data folder."""
        parser.add_argument("--port", type=int, default=8083, help="0 picks a free one")
        parser.add_argument("--host", default="127.0.0.1", help="loopback unless said otherwise")
        parser.add_argument(
            "--empty",
            action="store_true",
            help="without samples and their functions; at the first start, for good",
        )
        parser.add_argument(
            "--insecure-accept-any-key",
            action="store_true",
            help="throw-away use: take calls with any key or none as the owner's; loopback only",
        )
        parser.add_argument(
            "--allow-reset",
            action="store_true",
            help="throw-away use: POST /reset and `stateyard reset` remove all work; loopback only",
        )
        local_options.add_arguments(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Start, serve, stop."""
        del args
        folder = settings.DATA_DIR
        if options["empty"]:
            settings.STATEYARD_SAMPLE_FUNCTIONS = {}
        for name in ("insecure_accept_any_key", "allow_reset"):
            if options[name]:
                _check_loopback(name, options["host"])
        settings.STATEYARD_ACCEPT_ANY_KEY = options["insecure_accept_any_key"]
        settings.STATEYARD_ALLOW_RESET = options["allow_reset"]
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = _lock(folder)
        stay_on_one()  # before there are threads
        server_version()  # now: the checkout may have another commit before a page asks
        listener = listen(options["host"], options["port"])
        host, port = options["host"], listener.getsockname()[1]
        allow(host)
        settings.STATEYARD_TARGETS = local_options.without_own_endpoint(
            settings.STATEYARD_TARGETS,
            port,
            lambda name: validate_host(name, settings.ALLOWED_HOSTS),
        )
        reach_database()
        capacity.fit_pool()
        ready_tables.bring_up_to_date()
        identity.claim_database()  # before anything is written with a wrong secret
        address = local_address(host, port)
        settings.STATEYARD_URL = settings.STATEYARD_URL or address
        let_in(listener)
        self._prepare(folder, address, empty=options["empty"])
        worker = Embedded()
        worker.start()
        try:
            serve(listener)
        finally:
            worker.stop()
            lock.close()
        self.stdout.write("stopped")

    def _prepare(self, folder: Path, address: str, *, empty: bool) -> None:
        """Create owner, key and samples at the first start; print how to sign in."""
        user, project, _ = access.first_owner()
        credentials = folder / "credentials"
        if credentials.exists():
            self._complete(credentials, address)
        else:
            write_private(
                credentials,
                _profile(access.create_access_key(user, project, _DESCRIPTION), address),
            )
        decided = folder / "samples-loaded"
        if not decided.exists():
            if not empty:
                samples = put_sample_project(user)
                text = credentials.read_text(encoding="utf-8").rstrip("\n") + "\n\n"
                key = access.create_access_key(user, samples, _DESCRIPTION)
                write_private(credentials, text + _profile(key, address, SAMPLES_PROFILE))
            decided.write_text("no: the first start was --empty\n" if empty else "yes\n")
        store_address(address)
        link = f"{address}/login/{access.create_login_link(user)}/"
        write_private(folder / "login-url", link + "\n")
        make_private(credentials)
        self.stdout.write(
            f"\nStateyard is at {address}\n\n"
            f"  Log in (once, within a day):  {link}\n"
            f"  Another link:                 {program()} login_url --data {folder}\n"
            f"  Python functions run with:    {_interpreter(folder)}\n\n"
            "For boto3 and the AWS CLI, in their shell:\n\n"
            f"  export AWS_SHARED_CREDENTIALS_FILE={shlex.quote(str(credentials))}"
            f" AWS_PROFILE={PROFILE}\n"
            "  aws stepfunctions list-state-machines\n\n"
            "Ctrl-C stops; nothing is lost.\n"
        )
        self.stdout.flush()

    def _complete(self, credentials: Path, address: str) -> None:
        """Update the profile of an earlier start; an unreadable one is left alone."""
        last = credentials.with_name("address")
        before = last.read_text(encoding="utf-8").strip() if last.exists() else ""
        region = settings.STATEYARD_REGION
        try:
            complete_profile(credentials, address=address, before=before, region=region)
        except UnreadableProfileError as error:
            self.stderr.write(f"{credentials}: left as it is, for it cannot be read: {error}")


def _check_loopback(name: str, host: str) -> None:
    """Raise CommandError for a throw-away option on an address others can reach."""
    if host not in ("127.0.0.1", "::1", "localhost"):
        raise WrongUse(
            f"--{name.replace('_', '-')}: got --host {host}, wanted a loopback address: whoever "
            "reaches the server could do everything"
        )


def _lock(folder: Path) -> IO[bytes]:
    """Lock the data folder for this process; closing the file unlocks it."""
    file = os.fdopen(os.open(folder / "lock", os.O_RDWR | os.O_CREAT, PRIVATE), "r+b")
    if not locks.lock(file, locks.LOCK_EX | locks.LOCK_NB):
        file.close()
        raise CommandError(
            f"--data {folder}: another `{program().split()[-1]} up` is using this folder; stop it, "
            "or choose another folder"
        )
    return file


def _interpreter(folder: Path) -> str:
    """Return the default interpreter of functions."""
    general = general_options(settings.STATEYARD_FUNCTIONS)
    return (
        read_entry("", "", general, settings.STATEYARD_CONFIG or folder).options.python
        or sys.executable
    )


def _profile(key: AccessKey, address: str, name: str = PROFILE) -> str:
    secret, region = access.secret_for(key.key_id), settings.STATEYARD_REGION
    return profile_text(key.key_id, secret, address=address, region=region, name=name)
