"""The option ``--metrics-port``: serve a process's Prometheus metrics on a port of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.core.management.base import CommandError

from console.feature import Hook, hooked
from console.management.base import WrongUse

if TYPE_CHECKING:
    from argparse import ArgumentParser


def add_option(parser: ArgumentParser) -> None:
    """Add ``--metrics-port``."""
    parser.add_argument(
        "--metrics-port",
        type=int,
        metavar="PORT",
        help="serve metrics for Prometheus there, too (default: nowhere)",
    )


def check_option(port: int | None, processes: int = 1) -> None:
    """Refuse one port for several processes, or without the metrics feature."""
    if port is None:
        return
    if processes > 1:
        raise WrongUse(
            f"--metrics-port: got {processes} processes, wanted 1: each has numbers of its own; "
            "start the command more than once, with a port for each"
        )
    if not hooked(Hook.METRICS_PORT):
        raise CommandError("--metrics-port: STATEYARD_FEATURES leaves metrics out")


def serve_port(port: int | None, *, whole: bool) -> None:
    """Serve metrics at the port, if set. ``whole``: with figures of the server and projects."""
    if port is None:
        return
    (serve,) = hooked(Hook.METRICS_PORT)
    try:
        serve(port, whole=whole)
    except OSError as error:
        raise CommandError(f"--metrics-port {port}: {error.strerror}") from None
