"""Read the inputs of ``stateyard coverage``: definitions, result files, histories, servers."""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import engine
from console.cli.account import Account
from console.cli.documents import SourceError, read_text
from console.features.coverage.measuring import (
    Collection,
    CoverageFileError,
    Thresholds,
    read_events,
)
from console.features.deploy.discovery import read_paths
from console.features.deploy.executions import list_events
from console.features.deploy.lint_sources import quoted_placeholders, with_resources
from console.features.deploy.parameters import Parameters, parse_parameters

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

PYPROJECT = "pyproject.toml"
_FIELDS = ("fail_under", "machines", "thresholds")
_MOST_CHILDREN = 1_000
_WHOLE = 100


# -- settings --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CoverageSettings:
    """The table ``[tool.stateyard.coverage]``. ``machines``: paths of definitions."""

    thresholds: Thresholds = field(default_factory=Thresholds)
    machines: tuple[Path, ...] = ()


def read_settings(file: Path, *, required: bool) -> CoverageSettings:
    """Read the settings of a TOML file. ``required``: it must have the table.

    Raise ``SourceError`` for an invalid file or table.
    """
    try:
        document = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SourceError(f"{file}: {getattr(error, 'strerror', None) or error}") from None
    table: Any = document
    for name in ("tool", "stateyard", "coverage"):
        table = table.get(name, {} if name != "coverage" else None)
        if table is not None and not isinstance(table, dict):
            raise SourceError(f"{file}: {name}: got {table!r}, wanted [tool.stateyard.coverage]")
    if table is None:
        if required:
            raise SourceError(f"{file}: got no table [tool.stateyard.coverage], wanted one")
        return CoverageSettings()
    return _settings_of(table, file)


def _settings_of(table: Mapping[str, Any], file: Path) -> CoverageSettings:
    place = f"{file}: [tool.stateyard.coverage]"
    for name in table:
        if name not in _FIELDS:
            raise SourceError(f"{place}: got {name!r}, wanted one of {', '.join(_FIELDS)}")
    own = table.get("thresholds", {})
    if not isinstance(own, dict):
        raise SourceError(f"{place}: thresholds: got {own!r}, wanted NAME = PERCENT")
    paths = table.get("machines", [])
    if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths):
        raise SourceError(f"{place}: machines: got {paths!r}, wanted a list of paths")
    thresholds = {
        name: check_percent(value, f"{place}: thresholds.{name}") for name, value in own.items()
    }
    total = check_percent(table.get("fail_under", 0), f"{place}: fail_under")
    return CoverageSettings(
        Thresholds(total, thresholds), tuple(file.parent / path for path in paths)
    )


def check_percent(value: Any, place: str) -> float:
    """Return a percentage; raise ``SourceError`` for other values."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 <= value <= _WHOLE:
        raise SourceError(f"{place}: got {value!r}, wanted a number from 0 to 100")
    return float(value)


# -- files -----------------------------------------------------------------------------------------


def declare_files(collection: Collection, paths: Sequence[Path], params: Sequence[str]) -> None:
    """Add the state machines of files and folders, found as by ``deploy``."""
    parameters = Parameters(parse_parameters(list(params)), placeholders=True)
    for machine in read_paths(list(paths), Account(), parameters).machines if paths else ():
        text = with_resources(machine.definition)
        place = machine.place.partition(": ")[0]
        pattern = quoted_placeholders(machine.pattern or machine.definition)
        named = machine.name, text, machine.type
        try:
            _ = collection.declare(*named, place=place, source=pattern).reader
        except engine.DefinitionError as error:
            raise SourceError(f"{machine.place}: {error}") from None
        except ValueError as error:
            raise SourceError(f"{machine.place}: got no JSON: {error}") from None


def is_result(path: Path) -> bool:
    """Return whether a file has results: of pytest, a history or a scenario."""
    return (
        path.is_file()
        and isinstance(document := _parsed(path), dict)
        and ("format" in document or "events" in document or "Scenario" in document)
    )


def _parsed(path: Path) -> Any:
    if path.suffix != ".json":
        return None
    try:
        return json.loads(read_text(path))
    except (SourceError, ValueError, RecursionError):
        return None


def add_result(collection: Collection, path: Path) -> None:
    """Add the results of a file; raise ``SourceError`` if they match no state machine."""
    document = _parsed(path)
    try:
        if "Scenario" in document:
            _add_scenario(collection, path)
        elif "format" in document:
            collection.read_document(document, str(path))
        elif not collection.add_recorded(document, path):
            _add_history(collection, document["events"], str(path))
    except (CoverageFileError, engine.EngineError) as error:
        raise SourceError(str(error)) from None


def _add_scenario(collection: Collection, path: Path) -> None:
    text = read_text(path)
    scenario = json.loads(text)["Scenario"]
    try:
        events = engine.replayed_events(text)
    except (ValueError, KeyError) as error:
        raise SourceError(f"{path}: {error}") from None
    machine = collection.machine(json.dumps(scenario["Definition"]), scenario["Type"])
    machine.add_runs("replays", machine.reader.read(events))


def _add_history(collection: Collection, entries: Sequence[Any], place: str) -> None:
    """Add a history printed by the AWS CLI to the state machine with all its states."""
    events = read_events(entries, place)
    names = {event.state for event in events if event.state}
    fitting = [machine for machine in collection.machines if names <= machine.reader.states.keys()]
    if len(fitting) != 1:
        count = f"{len(fitting)} state machines" if fitting else "no state machine"
        raise SourceError(
            f"{place}: got {count} with the states of this history, wanted one: "
            "name its definition on the command line"
        )
    fitting[0].add_runs("histories", fitting[0].reader.read(events))


# -- servers ---------------------------------------------------------------------------------------


def add_server(collection: Collection, states: Any, arn: str, last: int, *, declare: bool) -> None:
    """Add a server's latest executions of a state machine, each under its own definition.

    ``states``: a boto3 client. ``declare``: report the current definition.
    """
    described = states.describe_state_machine(stateMachineArn=arn)
    if declare:
        collection.declare(described["name"], described["definition"], described["type"])
    for execution in _executions(states, last, stateMachineArn=arn):
        ran = states.describe_state_machine_for_execution(executionArn=execution)
        machine = collection.machine(ran["definition"], described["type"])
        waiting = [execution]
        while waiting:  # a child may have distributed Maps, too
            run = waiting.pop()
            events = read_history(states, run)
            machine.add_runs("the server", machine.reader.read(events))
            if any(event.type == "MapRunStarted" for event in events):
                waiting += _children(states, run)


def read_history(states: Any, arn: str) -> list[engine.Event]:
    """Return the history of an execution of a server."""
    return read_events(list_events(states, arn), arn)


def _executions(states: Any, last: int, **filters: str) -> Iterator[str]:
    pages = states.get_paginator("list_executions").paginate(
        **filters, PaginationConfig={"MaxItems": last}
    )
    try:
        for page in pages:
            yield from (execution["executionArn"] for execution in page["executions"])
    except states.exceptions.StateMachineTypeNotSupported:  # AWS lists no Express executions
        return


def _children(states: Any, execution: str) -> Iterator[str]:
    """Yield the child executions of the distributed Maps of an execution."""
    pages = states.get_paginator("list_map_runs").paginate(executionArn=execution)
    for page in pages:
        for run in page["mapRuns"]:
            yield from _executions(states, _MOST_CHILDREN, mapRunArn=run["mapRunArn"])
