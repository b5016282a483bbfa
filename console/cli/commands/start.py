"""``stateyard start``: start an execution, and optionally follow it to its end."""

from __future__ import annotations

import json
import sys
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

from botocore.config import Config

from console.cli import breakpoints
from console.cli.branches import call
from console.cli.commands import FAILED
from console.cli.connection import SYNC_ANSWER_S, add_connection_arguments, connect
from console.cli.documents import SourceError, load_document
from console.cli.faults import add_fault_argument, start_faulty
from console.cli.inputs import named_input
from console.cli.output import write_error, write_line

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Iterator

    from console.cli.connection import Connection

SUMMARY = "start an execution; --wait shows its states and returns its output"
_LOOK_S = 0.3
_TIMED_OUT = 3


def add_arguments(parser: ArgumentParser) -> None:
    """Add the state machine, the input, and ``--wait``."""
    parser.add_argument("machine", metavar="NAME", help="name or ARN, also of a version or alias")
    inputs = parser.add_mutually_exclusive_group()
    inputs.add_argument(
        "--input", default="{}", metavar="FILE", help="a file, - for stdin, or JSON"
    )
    inputs.add_argument(
        "--input-name", metavar="NAME", help="an input that the project keeps under this name"
    )
    parser.add_argument("--name", help="name of the execution")
    debugging = parser.add_mutually_exclusive_group()
    breakpoints.add_breakpoint_arguments(parser, debugging)
    add_fault_argument(debugging)
    parser.add_argument("--wait", action="store_true", help="until it has ended")
    parser.add_argument(
        "--timeout", type=float, default=3600, metavar="SECONDS", help="of --wait (default: 3600)"
    )
    add_connection_arguments(parser)


def run_command(options: Namespace) -> int:
    """Start an execution. Return 0: succeeded, 1: failed, 3: still running."""
    input_text = _read_input(options.input)
    connection = connect(options)
    arn = connection.machine_arn(options.machine)
    if options.input_name is not None:
        input_text = named_input(connection, arn, options.input_name)
    return _start(connection, arn, input_text, options)


def _read_input(word: str) -> str:
    """Return the input as JSON text, from a file, stdin or the command line."""
    if word == "-":
        return sys.stdin.read()
    path = Path(word)
    if not word.lstrip().startswith(("{", "[", '"')) and path.suffix:
        document = load_document(path)
        return json.dumps(document, ensure_ascii=False)
    try:
        json.loads(word)
    except ValueError:
        raise SourceError(f"--input: got {word[:60]!r}, wanted a file, - or JSON") from None
    return word


def _start(connection: Connection, arn: str, input_text: str, options: Namespace) -> int:
    states = connection.states
    request = {"stateMachineArn": arn, "input": input_text}
    if options.name:
        request["name"] = options.name
    if options.break_at:
        execution = _start_with_breakpoints(connection, request, options.break_at)
        return _follow(states, execution, options)
    if options.fault is not None:
        execution = start_faulty(connection, Path(options.fault), request)
        return _follow(states, execution, options)
    machine_arn = ":".join(arn.split(":")[:7])
    kind = states.describe_state_machine(stateMachineArn=machine_arn)["type"]
    if kind == "EXPRESS" and options.wait:
        patient = connection.client("stepfunctions", Config(read_timeout=SYNC_ANSWER_S))
        return _report(patient.start_sync_execution(**request))
    if kind == "EXPRESS":  # a repeated start would be a second execution
        states = connection.client("stepfunctions", Config(retries={"total_max_attempts": 1}))
    else:
        request.setdefault("name", str(uuid.uuid4()))
    return _follow(states, states.start_execution(**request)["executionArn"], options)


def _start_with_breakpoints(
    connection: Connection, request: dict[str, str], break_at: list[dict[str, Any]]
) -> str:
    """Start an execution that stops before states; return its ARN.

    AWS's StartExecution has no breakpoints, so this is a call of the server's own API. It may be
    made twice: the name sees to it that only one execution starts.
    """
    body = {
        "machine": request["stateMachineArn"],
        "name": request.get("name") or str(uuid.uuid4()),
        "input": request["input"],
        "breakpoints": breakpoints.breakpoints_text(
            connection, request["stateMachineArn"], break_at
        ),
    }
    answer = call(connection, "POST", "/api/executions/start", body, needs="breakpoints")
    return str(answer["executionArn"])


def _follow(states: Any, execution: str, options: Namespace) -> int:
    """Write the ARN of a new execution, or wait for its end."""
    if not options.wait:
        write_line(execution)
        return 0
    write_state(execution)
    return _wait(states, execution, options.timeout)


def _wait(states: Any, execution: str, timeout_s: float) -> int:
    """Print entered states until the execution has ended; Ctrl-C leaves it running."""
    deadline = time.monotonic() + timeout_s
    last = 0
    try:
        while True:
            answer = states.describe_execution(executionArn=execution)
            for event in _news(states, execution, last):
                last = event["id"]
                _show(event)
            if answer["status"] not in ("RUNNING", "PENDING_REDRIVE"):
                return _report(answer)
            if time.monotonic() > deadline:
                write_error(f"{execution} still runs after {timeout_s:g} s")
                return _TIMED_OUT
            time.sleep(_LOOK_S)
    except KeyboardInterrupt:
        write_error(f"{execution} runs on")
        return _TIMED_OUT


def _news(states: Any, execution: str, last: int) -> Iterator[dict[str, Any]]:
    """Yield the events after the last seen one, in order."""
    request: dict[str, Any] = {"executionArn": execution, "reverseOrder": True}
    fresh: list[dict[str, Any]] = []
    while True:
        page = states.get_execution_history(**request, includeExecutionData=False)
        fresh += [event for event in page["events"] if event["id"] > last]
        if "nextToken" not in page or page["events"][-1]["id"] <= last + 1:
            break
        request["nextToken"] = page["nextToken"]
    yield from reversed(fresh)


def _show(event: dict[str, Any]) -> None:
    """Print a line for an entered or left state, and for an event with an error."""
    moment = event["timestamp"].strftime("%H:%M:%S")
    for key, verb in (("stateEnteredEventDetails", "entered"), ("stateExitedEventDetails", "left")):
        if key in event:
            write_state(f"{moment}  {event[key]['name']}  {verb}")
    for details in event.values():
        if isinstance(details, dict) and details.get("error"):
            write_state(f"{moment}  {event['type']}  {details['error']}")


def write_state(text: str) -> None:
    """Print a line of progress to stderr."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def _report(execution: dict[str, Any]) -> int:
    """Print the output or the error; return the exit code."""
    if execution["status"] == "SUCCEEDED":
        write_line(execution.get("output", ""))
        return 0
    reason = ": ".join(execution[key] for key in ("error", "cause") if execution.get(key))
    write_error(f"{execution['status']}{': ' if reason else ''}{reason}")
    return FAILED
