"""``manage.py review``: compare the state machines of two commits, for a pull request."""

from __future__ import annotations

import os
from argparse import Namespace
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from console.cli.commands import add_parameter_argument
from console.cli.connection import add_connection_arguments, connect
from console.features.deploy.parameters import parse_parameters
from console.features.review import reviewing
from console.features.review.untried import untried_points
from console.management.base import ErrorLineCommand, WrongUse

if TYPE_CHECKING:
    from django.core.management.base import CommandParser

_MOST_EXECUTIONS = 1000


class Command(ErrorLineCommand):
    """Writes ``review.md`` and SVG files; changes nothing in the repository or on the server."""

    help = "Compare the state machines of two commits: graphs, fields, problems, permissions."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the commits, the paths, the output folder and the server."""
        parser.add_argument("commits", metavar="BASE..HEAD", help="BASE...HEAD: since the branch")
        parser.add_argument(
            "paths",
            nargs="*",
            type=Path,
            default=[],
            metavar="PATH",
            help="what deploy reads (default: here)",
        )
        parser.add_argument("--output", type=Path, default=Path("stateyard-review"), metavar="DIR")
        add_parameter_argument(parser)
        parser.add_argument(
            "--executions",
            type=int,
            default=20,
            metavar="N",
            help="replay the last N executions of each changed state machine (default: 20)",
        )
        parser.add_argument(
            "--coverage",
            action="append",
            type=Path,
            default=[],
            metavar="FILE",
            help="results of pytest --stateyard-coverage=FILE: name new paths without a test",
        )
        add_connection_arguments(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Write the files, and print their paths."""
        del args
        number = options["executions"]
        if not 0 <= number <= _MOST_EXECUTIONS:
            raise WrongUse(f"--executions: got {number}, wanted 0 to {_MOST_EXECUTIONS}")
        review = reviewing.review_commits(
            Path.cwd(),
            options["commits"],
            options["paths"] or [Path()],
            parse_parameters(options["param"]),
        )
        untried = untried_points(review.machines, options["coverage"])
        replays, left_out = reviewing.replay_machines(
            review.machines, lambda: connect(Namespace(**{**options, "data": _data()})), number
        )
        try:
            written = reviewing.write_review(
                replace(review, replays=replays, left_out=left_out, untried=untried),
                options["output"],
            )
        except OSError as error:
            raise WrongUse(f"--output {options['output']}: {error.strerror}") from None
        for path in written:
            self.stdout.write(str(path))


def _data() -> str | None:
    """Return the folder of ``--data``, if it is that of a server.

    ``command_line.set_up`` has put it into its variable.
    """
    folder = os.environ.get("STATEYARD_DATA")
    return folder if folder and Path(folder, "credentials").is_file() else None
