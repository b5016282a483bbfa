"""``manage.py web``: serve pages and API for a team; ``manage.py worker`` runs the executions."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from django.db import connection

from console import access
from console.config.version import server_version
from console.db import postgres, signals
from console.functions.cpu_affinity import stay_on_one
from console.management import metrics_port
from console.management.addresses import public_address, store_address
from console.management.base import DataFolderCommand
from console.management.team import one_at_a_time, prepare
from console.server.serving import allow, let_in, listen, serve
from console.server.watchdog import Pulse
from console.store.people.sample_project import put_sample_project

if TYPE_CHECKING:
    from argparse import ArgumentParser


class Command(DataFolderCommand):
    """Migrates the database, and serves until SIGTERM or Ctrl-C. Several may run."""

    help = "Serve pages and API beside any number of workers, on PostgreSQL."
    requires_system_checks: list[str] = []
    requires_migrations_checks = False

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the address."""
        parser.add_argument("--port", type=int, default=8083, help="0 picks a free one")
        parser.add_argument("--host", default="127.0.0.1", help="loopback unless said otherwise")
        parser.add_argument(
            "--samples", action="store_true", help="load the samples at the first start"
        )

        metrics_port.add_option(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Migrate, subscribe to the workers' signals, serve, and stop."""
        del args
        metrics_port.check_option(options["metrics_port"])
        stay_on_one()  # before there are threads
        server_version()  # now: the checkout may have another commit before a page asks
        prepare()
        postgres.limit_statements()
        from console.worker.delayed_wakeups import DelayedWakeups
        from console.worker.pg_signals import NotifyListener, PgTransport
        from console.worker.team import FROM_OUTSIDE

        server_socket = listen(options["host"], options["port"])
        allow(options["host"])
        address = public_address(options["host"], server_socket.getsockname()[1])
        store_address(address)
        with one_at_a_time():
            self._first_start(address, samples=options["samples"])
        signals.use_transport(PgTransport(*FROM_OUTSIDE))
        signal_listener = NotifyListener()
        signal_listener.start()
        delayed_wakeups = DelayedWakeups()
        delayed_wakeups.start()
        Pulse().start()
        metrics_port.serve_port(options["metrics_port"], whole=True)
        connection.close()  # this thread no longer needs it
        let_in(server_socket)
        self.stdout.write(f"Stateyard serves at {address}")
        self.stdout.flush()
        try:
            serve(server_socket)
        finally:
            delayed_wakeups.stop()
            signal_listener.stop()
        self.stdout.write("stopped")
        self.stdout.flush()
        os._exit(0)  # a usual exit waits for threads, and one may wait for a silent database

    def _first_start(self, address: str, *, samples: bool) -> None:
        """Create the owner if there is no user yet, and print the first login link."""
        user, _, new = access.first_owner()
        if not new:
            return
        if samples:
            put_sample_project(user)
        link = access.create_login_link(user)
        self.stdout.write(f"Log in (once, within a day): {address}/login/{link}/")
