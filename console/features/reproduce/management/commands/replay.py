"""``manage.py replay``: run recorded executions again, without calling services, and compare."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import engine
from console.cli.account import Account
from console.cli.commands import add_parameter_argument
from console.features.deploy.discovery import read_paths
from console.features.deploy.parameters import Parameters, parse_parameters
from console.features.deploy.placeholders import Placeholders
from console.features.reproduce.outcomes import WRITERS, ReplayOutcome
from console.features.test_state.scenarios.files import (
    RecordingError,
    UnfinishedError,
    list_recordings,
    read_scenario,
)
from console.features.test_state.scenarios.scenario import scenario_of
from console.features.test_state.web import recorded
from console.integrations import parameters
from console.management.base import DataFolderCommand, WrongUse, read_file
from console.masking import masked_execution
from console.masking.mask import MASK
from console.models import Execution
from console.statuses import ExecutionStatus

if TYPE_CHECKING:
    from argparse import ArgumentParser
    from collections.abc import Callable, Iterator

    from console.masking.mask import Mask

    Play = Callable[[str], list[engine.ReplayDifference]]

_VALUE = re.compile(r"(?:output|input of .+?) (\$.*)", re.DOTALL)
"""The place of a difference of two values, with its path."""


class Command(DataFolderCommand):
    """Prints every difference; exits with 1 if there is any, with 2 if a file cannot be read."""

    help = "Run recorded executions again: same path, same output?"
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add files or imports, another definition to replay with, and the format."""
        parser.add_argument(
            "files", nargs="*", metavar="FILE", help="scenario, history or folder; - for stdin"
        )
        parser.add_argument(
            "--imports", type=int, default=0, metavar="N", help="the last N imported executions"
        )
        parser.add_argument("--machine", metavar="NAME", help="imports of this state machine only")
        parser.add_argument("--project", metavar="NAME", help="imports of this project only")
        parser.add_argument(
            "--definition", metavar="FILE", help="run this definition instead of the recorded one"
        )
        add_parameter_argument(parser)
        parser.add_argument(
            "--no-inputs", action="store_true", help="do not compare the inputs of tasks"
        )
        parser.add_argument("--format", choices=WRITERS, default="text")

    def handle(self, *args: Any, **options: Any) -> None:
        """Replay each execution."""
        del args
        outcomes = self._replay(options)
        self.stdout.write(WRITERS[options["format"]](outcomes))
        if any(outcome.differs for outcome in outcomes):
            sys.exit(1)

    def _replay(self, options: dict[str, Any]) -> list[ReplayOutcome]:
        if bool(options["files"]) == bool(options["imports"]) or options["imports"] < 0:
            raise WrongUse("got no executions or both kinds, wanted files or --imports N")
        if options["files"] and (options["machine"] or options["project"]):
            raise WrongUse("--machine and --project: got files, wanted --imports N")
        definition = _definition(options["definition"], options["param"])

        def play(scenario: str) -> list[engine.ReplayDifference]:
            return engine.replay(
                *(scenario, definition, parameters.parameter_problem),
                requests=not options["no_inputs"],
            )

        return [
            *(each for name in options["files"] for each in _of_file(name, play)),
            *_of_imports(options, play),
        ]


def _definition(file: str | None, params: list[str]) -> str | None:
    """Return the definition of a file that ``deploy`` reads, or of stdin; None without a file."""
    values = parse_parameters(params)
    if file is None:
        if values:
            raise WrongUse("--param: got no --definition, wanted the file with the parameter")
        return None
    parameters = Parameters(values)
    if file == "-":
        text = Placeholders(parameters, "stdin").fill(read_file(file))
        parameters.check()
        return text
    machines = read_paths([Path(file)], Account(), parameters).machines
    if len(machines) != 1:
        raise WrongUse(f"--definition {file}: got {len(machines)} state machines, wanted one")
    return machines[0].definition


def _of_file(name: str, play: Play) -> Iterator[ReplayOutcome]:
    try:
        if name == "-":
            yield ReplayOutcome(name, play(read_file(name)))
            return
        for file in list_recordings(Path(name)):
            name = str(file)
            try:
                yield ReplayOutcome(name, play(json.dumps(read_scenario(file))))
            except UnfinishedError:
                yield ReplayOutcome(name, unfinished=True)
    except RecordingError as error:
        raise WrongUse(str(error)) from None
    except (engine.JsonTextError, ValueError) as error:
        raise WrongUse(f"{name}: {error}") from None


def _of_imports(options: dict[str, Any], play: Play) -> Iterator[ReplayOutcome]:
    """Yield the outcomes of the latest imports; raise WrongUse if none matches."""
    if not options["imports"]:
        return
    rows = Execution.imports.select_related("project", "definition").order_by("-imported_ms", "-pk")
    if options["project"]:
        rows = rows.filter(project__name=options["project"])
    if options["machine"]:
        rows = rows.filter(state_machine_arn__endswith=f":{options['machine']}")
    imports = list(rows[: options["imports"]])
    if not imports:
        raise WrongUse("--imports: got no matching import, wanted an imported execution")
    for execution in imports:
        yield _of_import(execution, play)


def _of_import(execution: Execution, play: Play) -> ReplayOutcome:
    """Replay an import with its masked values; mask them in the differences."""
    name = f"{execution.state_machine_arn.rpartition(':')[2]}/{execution.name}"
    if execution.status == ExecutionStatus.UNFINISHED:
        return ReplayOutcome(name, unfinished=True)
    if recorded.is_too_large(execution):
        return ReplayOutcome(name, problem="its history is too large")
    whole = masked_execution.unmask_execution(execution)
    hidden = masked_execution.masked_execution(execution).mask
    try:
        scenario = scenario_of(recorded.read_recording(whole))
        differences = play(json.dumps(scenario))
    except engine.DefinitionError as error:
        return ReplayOutcome(name, problem=f"its definition cannot be run: {error}")
    except (ValueError, engine.JsonTextError):
        return ReplayOutcome(name, problem="a payload is cut, left out or not JSON")
    return ReplayOutcome(
        name,
        [_mask_difference(hidden, each) for each in differences],
    )


def _mask_difference(hidden: Mask, difference: engine.ReplayDifference) -> engine.ReplayDifference:
    """Mask the texts of a difference; a cut text may end within a hidden value."""
    match = _VALUE.fullmatch(difference.where)
    path = match[1] if match else ""
    texts = (_mask_text(hidden, text, path) for text in (difference.got, difference.expected))
    return engine.ReplayDifference(hidden.words(difference.where), *texts)


def _mask_text(hidden: Mask, text: str, path: str) -> str:
    if text == "nothing":  # no JSON: there is no such value
        return text
    return MASK if hidden.values and text.endswith("…") else hidden.part(text, path)
