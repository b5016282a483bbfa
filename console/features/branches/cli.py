"""``stateyard branch``: list and delete branches, and run a command in a branch."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from console.cli import branches
from console.cli.connection import ConnectionRefused, add_connection_arguments, connect
from console.cli.output import write_error, write_line

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from console.cli.branches import BranchAccess
    from console.cli.connection import Connection

SUMMARY = "list and delete branches of a project, and run tests in one"
_NOT_RUN = 127  # what a shell returns for a command that it does not find
_BY_SIGNAL = 128
_ENDS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
_PR_SET_PDEATHSIG = 1  # of linux/prctl.h
_SHOWN = 10
_CAUSE = 300
_SERVICES = ("SFN", "EVENTBRIDGE", "SCHEDULER", "CLOUDWATCH", "CLOUDWATCH_LOGS", "STS")
_HIDDEN = (
    *("AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_SESSION_TOKEN"),
    "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS",
    *(f"AWS_ENDPOINT_URL_{service}" for service in _SERVICES),
)
"""Variables that would override the branch's variables."""


def add_arguments(parser: ArgumentParser) -> None:
    """Add the action and the branch."""
    acts = parser.add_subparsers(dest="act", required=True, metavar="ACT")
    listing = acts.add_parser("list", help="list the branches of the project of your key")
    delete = acts.add_parser("delete", help="delete a branch with all it has")
    delete.add_argument("name", metavar="NAME", help="the branch's name in git")
    run = acts.add_parser("run", help="run a command with the environment of a branch")
    run.add_argument("name", metavar="NAME", help="the branch's name in git")
    run.add_argument(
        "--tests",
        action="store_true",
        help="the command runs tests: if they fail, show the executions that failed meanwhile",
    )
    for each in (listing, delete, run):
        add_connection_arguments(each)
    run.add_argument("command", nargs="+", metavar="COMMAND", help="what to run, after --")


def run_command(options: Namespace) -> int:
    """List, delete, or run; return for ``run`` the command's exit code."""
    connection = connect(options)
    if options.act == "list":
        return _list_branches(connection)
    if options.act == "delete":
        branches.call(connection, "POST", "/api/branches/delete", {"branch": options.name})
        write_line(f"branch {options.name}: is being deleted")
        return 0
    return _run_in_branch(connection, options)


def _list_branches(connection: Connection) -> int:
    for branch in branches.call(connection, "GET", "/api/branches")["branches"]:
        status = "until " + _moment(branch["expiresAt"])
        if branch["archivedAt"]:
            status = "archived"
        if branch["deleting"]:
            status = "is being deleted"
        write_line(f"{branch['branch']:<32}  {branch['project']}  {branch['accountId']}  {status}")
    return 0


def _moment(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M} UTC"


def _run_in_branch(connection: Connection, options: Namespace) -> int:
    branch = branches.open_branch(connection, options.name)
    code = _run_with(options.command, branch.environment)
    if options.tests and code:
        _show_failures(connection, branch)
    return code


def _run_with(command: list[str], variables: dict[str, str]) -> int:
    """Run a command to its end; return its exit code, 128 + n after signal n.

    A signal to end is forwarded to the command and its child processes; the command then determines
    the exit code. The server needs no notice of the end.
    """
    environment = {**os.environ, **variables}
    for name in _HIDDEN:
        environment.pop(name, None)
    child = _BranchCommand()
    # no SIG_IGN: the command would inherit it
    before = {number: signal.signal(number, child.hand_on) for number in _ENDS}
    try:
        try:
            code = child.run_to_end(command, environment)
        except OSError as error:
            write_error(f"{command[0]}: {error.strerror}")
            return _NOT_RUN
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return _BY_SIGNAL - code if code < 0 else code


class _BranchCommand:
    """The child process of a command, with its process group.

    At a terminal it stays in the group of this process: it may read the terminal, and Ctrl-C
    reaches it by itself.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._early: list[int] = []
        self._at_terminal = sys.stdin is not None and sys.stdin.isatty()

    def run_to_end(self, command: list[str], environment: dict[str, str]) -> int:
        """Wait for the end; return the exit code, negative after a signal."""
        more: dict[str, Any] = {}
        if os.name == "posix":
            more["process_group"] = None if self._at_terminal else 0
            more["preexec_fn"] = partial(_end_with_parent, os.getpid())
        self._process = subprocess.Popen(command, env=environment, **more)  # noqa: S603 - what was asked for
        for number in self._early:  # came while the process was being made
            self.hand_on(number, None)
        return self._process.wait()

    def hand_on(self, number: int, frame: object) -> None:
        """Forward a signal to the process group."""
        del frame
        if self._process is None:
            self._early.append(number)
        elif self._at_terminal or os.name != "posix":
            if number != signal.SIGINT:
                self._process.send_signal(number)
        else:
            with contextlib.suppress(ProcessLookupError):  # it has just ended
                os.killpg(self._process.pid, number)


def _end_with_parent(parent: int) -> None:
    """Let Linux kill this process when its parent dies, even by kill -9."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:  # the parent ended before prctl took effect
            os.kill(os.getpid(), signal.SIGTERM)


def _show_failures(connection: Connection, branch: BranchAccess) -> None:
    """Print the executions of the branch that failed since the command began."""
    body = {"branch": branch.name, "since": str(branch.described["now"])}
    try:
        answer = branches.call(connection, "POST", "/api/branches/failures", body)
        failed = answer["executions"]
        for execution in failed[:_SHOWN]:
            described = branch.connection.states.describe_execution(
                executionArn=execution["executionArn"]
            )
            write_error(f"{execution['status']} {execution['executionArn']}{_reason(described)}")
    except (ConnectionRefused, BotoCoreError, ClientError) as error:
        write_error(f"cannot tell which executions failed: {error}")
        return
    if len(failed) > _SHOWN:
        write_error("and more, on the page Executions of the branch")


def _reason(execution: dict[str, Any]) -> str:
    parts = [execution[key] for key in ("error", "cause") if execution.get(key)]
    text = " ".join(": ".join(parts).split())
    return f": {text[:_CAUSE]}" if text else ""
