"""``stateyard settings``: export or import the settings of a project as YAML."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from console.cli.branches import call_for_text
from console.cli.connection import add_connection_arguments, connect
from console.cli.documents import SourceError, read_text
from console.cli.output import write_line

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from console.cli.connection import Connection

SUMMARY = "export the settings of a project as YAML, or import them"
_PATH = "/api/settings"


def add_arguments(parser: ArgumentParser) -> None:
    """Add the action and the file."""
    parser.add_argument("act", choices=("export", "import"), help="what to do")
    parser.add_argument("file", nargs="?", type=Path, help="the file; export prints without one")
    parser.add_argument(
        "--dry-run", action="store_true", help="import: show what would change, change nothing"
    )
    add_connection_arguments(parser)


def run_command(options: Namespace) -> int:
    """Export or import."""
    if options.act == "export" and options.dry_run:
        raise SourceError("--dry-run is an option of import")
    if options.act == "import" and options.file is None:
        raise SourceError("import: name the file")
    connection = connect(options)
    if options.act == "export":
        _export(connection, options.file)
    else:
        _import(connection, options.file, dry_run=options.dry_run)
    return 0


def _export(connection: Connection, file: Path | None) -> None:
    text = call_for_text(connection, "GET", _PATH)
    if file is None:
        write_line(text.rstrip("\n"))
    else:
        file.write_text(text, encoding="utf-8")


def _import(connection: Connection, file: Path, *, dry_run: bool) -> None:
    path = f"{_PATH}?dryRun=true" if dry_run else _PATH
    answer = json.loads(call_for_text(connection, "POST", path, read_text(file)))
    changes = answer["changes"]
    for change in changes:
        write_line(change)
    for secret in answer.get("secrets", ()):
        write_line(f"enter on the page Targets: {secret}")
    if not changes:
        write_line("no changes")
    elif dry_run:
        write_line("nothing was changed: this was a dry run")
