"""``stateyard test generate``: makes a test of an execution, or of a definition alone."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import engine
from console.cli.account import Account
from console.cli.commands import FAILED
from console.cli.connection import add_connection_arguments, connect
from console.cli.documents import SourceError, load_document
from console.cli.output import write_error, write_file, write_line
from console.errors import ValidationException
from console.features.deploy.discovery import is_definition, read_paths
from console.features.deploy.executions import read_execution
from console.features.deploy.parameters import Parameters
from console.features.test_state.scenarios.files import make_scenario, read_scenario
from console.features.test_state.scenarios.scenario import scenario_of
from console.features.test_state.scenarios.tests import WRITERS, NoCallError, UnstableError
from console.recordings.recording import RecordedExecution

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

SUMMARY = "make a test of an execution or a definition: generate"
_ARN = "arn:aws:states:us-east-1:123456789012"
_MOST_STEPS = 10_000


def add_arguments(parser: ArgumentParser) -> None:
    """Add the source, the kind of the test, and where it is written."""
    parser.add_argument("action", choices=["generate"])
    parser.add_argument(
        "source",
        metavar="ARN|FILE",
        help="an execution, its scenario, history or export, or a definition",
    )
    parser.add_argument("--as", dest="kind", choices=WRITERS, default="pytest")
    parser.add_argument("--to", type=Path, metavar="FILE", help="default: stdout")
    parser.add_argument(
        "--definition",
        type=Path,
        metavar="FILE",
        help="pytest: test this definition instead of the recorded one; needs --to",
    )
    parser.add_argument(
        "--input", metavar="JSON", help="of a definition: the input to run it with (default: {})"
    )
    add_connection_arguments(parser)


def run_command(options: Namespace) -> int:
    """Write the test; return 1 if it would fail."""
    _check(options)
    try:
        scenario = _read_source(options)
        text = WRITERS[options.kind](scenario, _definition_path(options))
    except UnstableError as error:
        write_error(f"{options.source}: a test of it would fail: {error}")
        return FAILED
    except NoCallError as error:
        raise SourceError(f"{options.source}: {error}") from None
    except ValidationException as error:
        raise SourceError(f"{options.source}: {error.message}") from None
    if options.to is None:
        write_line(text.rstrip("\n"))
    else:
        write_file(options.to, text)
    return 0


def _check(options: Namespace) -> None:
    """Raise ``SourceError`` for options that do not go together."""
    if options.definition is None:
        return
    if options.kind != "pytest":
        raise SourceError(f"--definition: got --as {options.kind}, wanted --as pytest")
    if options.to is None:
        raise SourceError("--definition: got no --to, wanted the file beside which it stands")
    if not options.definition.is_file():
        raise SourceError(f"--definition: {options.definition} is no file")


def _definition_path(options: Namespace) -> str:
    """Return the path of the definition as written into the test, "" for the recorded one."""
    if options.definition is None:
        return ""
    path = os.path.relpath(options.definition, options.to.parent)
    return Path(path).as_posix()


def _read_source(options: Namespace) -> dict[str, Any]:
    """Return the scenario of the source."""
    if options.source.startswith("arn:"):
        _refuse_input(options)
        execution = read_execution(connect(options).states, options.source)
        return make_scenario(execution.printed, options.source)
    path = Path(options.source)
    if path.is_dir():
        raise SourceError(f"{path}: got a folder, wanted an execution or a definition")
    if not path.exists():
        raise SourceError(f"{path}: there is no such file")
    if _is_definition(path):
        return _run_definition(path, options.input or "{}")
    _refuse_input(options)
    return read_scenario(path)


def _refuse_input(options: Namespace) -> None:
    if options.input is not None:
        raise SourceError("--input: got an execution, which has its own, wanted a definition")


def _is_definition(path: Path) -> bool:
    """Whether a file is a definition, or a template with one."""
    if path.name.endswith((".history.json", ".scenario.json")):
        return False
    document = load_document(path)
    return is_definition(document) or "Resources" in document


def _run_definition(path: Path, text: str) -> dict[str, Any]:
    """Return the scenario of a run in memory, in which each call answers with ``{}``."""
    try:
        data = json.loads(text)
    except ValueError:
        raise SourceError(f"--input: got {text[:60]!r}, wanted JSON") from None
    project = read_paths([path], Account(), Parameters({}, placeholders=True))
    if len(project.machines) != 1:
        raise SourceError(f"{path}: got {len(project.machines)} state machines, wanted one")
    machine = project.machines[0]
    try:
        graph = engine.build_graph(engine.parse(machine.definition, machine.type))
        answers = {node.name: _answer for node in graph.nodes if node.type == "Task"}
        result = engine.run(machine.definition, data, answers, max_steps=_MOST_STEPS)
    except engine.EngineError as error:
        raise SourceError(f"{path}: cannot be run: {error}") from None
    if answers:
        write_error(f"note: {path}: no call was recorded, so each answers {{}}: edit the answers")
    if result.status != "SUCCEEDED":
        cause = f"{result.error}: {result.cause}" if result.cause else result.error
        write_error(f"warning: the run ends with {cause}; --input gives another input")
    return scenario_of(
        RecordedExecution(
            definition=machine.definition,
            events=result.events,
            arn=f"{_ARN}:execution:{machine.name}:generated",
            name="generated",
            machine=machine.name,
            machine_arn=f"{_ARN}:stateMachine:{machine.name}",
            input=json.dumps(data),
            status=result.status,
            output=None if result.output is None else json.dumps(result.output),
            error=result.error,
            cause=result.cause,
        )
    )


def _answer(_input: Any) -> Any:
    return {}
