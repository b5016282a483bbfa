"""``stateyard settings``: export or import the settings of a project as YAML."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import httpx
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.exceptions import BotoCoreError

from console.cli.connection import ConnectionRefused, add_connection_arguments, connect
from console.cli.output import write_error, write_line

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from console.cli.connection import Connection

SUMMARY = "export the settings of a project as YAML, or import them"
_TIMEOUT_S = 120.0


def add_arguments(parser: ArgumentParser) -> None:
    """Add the action and the file."""
    parser.add_argument("act", choices=("export", "import"), help="what to do")
    parser.add_argument("file", nargs="?", type=Path, help="the file; export prints without one")
    parser.add_argument(
        "--dry-run", action="store_true", help="import: show what would change, change nothing"
    )
    add_connection_arguments(parser)


def run_command(options: Namespace) -> int:
    """Export or import; return 1 if the server refuses."""
    if options.act == "export" and options.dry_run:
        write_error("--dry-run is an option of import")
        return 2
    if options.act == "import" and options.file is None:
        write_error("import: name the file")
        return 2
    try:
        connection = connect(options)
        if options.act == "export":
            _export(connection, options.file)
        else:
            _import(connection, options.file, dry_run=options.dry_run)
    except UnicodeDecodeError as error:
        write_error(f"{options.file}: a byte at {error.start} is no UTF-8")
        return 1
    except (ConnectionRefused, BotoCoreError, httpx.HTTPError, OSError) as error:
        write_error(str(error))
        return 1
    return 0


def _export(connection: Connection, file: Path | None) -> None:
    text = _call(connection, "GET", "").text
    if file is None:
        write_line(text.rstrip("\n"))
    else:
        file.write_text(text, encoding="utf-8")


def _import(connection: Connection, file: Path, *, dry_run: bool) -> None:
    text = file.read_text(encoding="utf-8-sig")
    answer = _call(connection, "POST", "?dryRun=true" if dry_run else "", text).json()
    changes = answer["changes"]
    for change in changes:
        write_line(change)
    for secret in answer.get("secrets", ()):
        write_line(f"enter on the page Targets: {secret}")
    if not changes:
        write_line("no changes")
    elif dry_run:
        write_line("nothing was changed: this was a dry run")


def _call(connection: Connection, method: str, query: str, text: str = "") -> httpx.Response:
    """Make a signed call; raise ConnectionRefused for an error of the server."""
    url = f"{connection.web_address}/api/settings{query}"
    credentials = connection.session.get_credentials()
    if credentials is None:
        raise ConnectionRefused("there is no access key: set AWS_PROFILE or AWS_ACCESS_KEY_ID")
    request = AWSRequest(method, url, data=text.encode() if method == "POST" else None)
    SigV4Auth(credentials, "stateyard", connection.states.meta.region_name).add_auth(request)
    answer = httpx.request(
        method, url, headers=dict(request.headers), content=request.data, timeout=_TIMEOUT_S
    )
    if answer.is_error:
        try:
            message = str(answer.json()["message"])
        except (ValueError, KeyError, TypeError):
            message = f"{url}: {answer.status_code} {answer.text.strip()[:200]}"
        raise ConnectionRefused(message)
    return answer
