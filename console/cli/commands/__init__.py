"""The commands, one module each: ``SUMMARY``, ``add_arguments(parser)``, ``run_command(options)``.

``run_command`` returns the exit code: 0, or ``FAILED`` for a finding. Errors that it raises are
printed here. They end the command with ``WRONG_USE`` if an option, a file or a name cannot be used,
also by the server, and with ``FAILED`` otherwise.
"""

from __future__ import annotations

import importlib
import re
import sys
from typing import TYPE_CHECKING, Any

from console.cli.output import file_problem, write_error

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Callable

FAILED, WRONG_USE = 1, 2
_REJECTED = re.compile(r"DoesNotExist|NotFound|Invalid|^Validation")
"""Error codes of a server for a name or a value that it does not accept."""


def add_parameter_argument(parser: ArgumentParser) -> None:
    """Add the option ``--param``."""
    parser.add_argument(
        "--param",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a parameter of a file, as text or JSON; repeatable",
    )


def run_client_command(module: str, options: Namespace) -> int:
    """Run the command of a module; return its exit code."""
    command = importlib.import_module(module)
    try:
        return guarded(lambda: int(command.run_command(options)))
    finally:
        # A command that reads no file does not load YAML.
        documents: Any = sys.modules.get("console.cli.documents")
        for warning in documents.WARNINGS if documents else ():
            write_error(f"warning: {warning}")


def guarded(act: Callable[[], int]) -> int:
    """Return the exit code of an act; print an error of its files, its use or the server."""
    try:
        return act()
    except _failures() as error:
        write_error(" ".join(str(error).split()))
        return WRONG_USE if _REJECTED.search(_code_of(error)) else FAILED
    except _wrong_uses() as error:
        write_error(file_problem(error) if isinstance(error, OSError) else str(error))
        return WRONG_USE


# Called after an exception only: a help loads neither the engine nor boto3 nor YAML.


def _failures() -> tuple[type[Exception], ...]:
    """Return the errors of a server that refuses, or does not answer."""
    from botocore.exceptions import BotoCoreError, ClientError

    from console.cli.branches import CallRefused

    return CallRefused, BotoCoreError, ClientError


def _code_of(error: Exception) -> str:
    """Return the error code of a server's answer, "" without one."""
    response = getattr(error, "response", None)
    if isinstance(response, dict):
        return str(response["Error"]["Code"])
    return str(getattr(error, "code", ""))


def _wrong_uses() -> tuple[type[Exception], ...]:
    """Return the errors of arguments, settings and files."""
    import engine
    from console.cli.connection import ConnectionRefused
    from console.cli.documents import SourceError

    return SourceError, ConnectionRefused, engine.DefinitionError, OSError
