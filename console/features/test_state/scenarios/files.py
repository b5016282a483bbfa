"""Read recorded executions from files: scenarios, exports, and output of AWS CLI commands.

An execution from the AWS CLI has up to three files: ``NAME.history.json``, ``NAME.machine.json``
and ``NAME.execution.json``, of get-execution-history, describe-state-machine-for-execution and
describe-execution. The last one is optional; without a name they are ``history.json`` and so on.
``stateyard pull`` and ``stateyard fetch`` write such files.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import engine
from console.cli.documents import SourceError
from console.errors import ValidationException
from console.features.test_state.scenarios.scenario import scenario_of
from console.recordings.printed import Printed, read_printed
from console.recordings.recording import recording_of

if TYPE_CHECKING:
    from pathlib import Path

_HISTORY, _SCENARIO = "history.json", ".scenario.json"


class UnfinishedError(SourceError):
    """A recorded execution has not ended; the text names the file."""


class RecordingError(SourceError):
    """A file has no usable execution; the text names the file and the problem."""


def read_text(path: Path) -> str:
    """Return the text of a JSON file in UTF-8, or in UTF-16 as written by PowerShell."""
    try:
        data = path.read_bytes()
        return data.decode(json.detect_encoding(data))
    except (OSError, UnicodeDecodeError) as error:
        raise RecordingError(f"{path}: {getattr(error, 'strerror', None) or error}") from None


def list_recordings(path: Path) -> list[Path]:
    """Return one file for each execution in a folder; for a file, the file itself."""
    if not path.is_dir():
        return [path]
    names = (_HISTORY, _SCENARIO)
    files = sorted(file for file in path.rglob("*.json") if file.name.endswith(names))
    if not files:
        raise RecordingError(
            f"{path}: got no recorded execution, wanted NAME.history.json or NAME.scenario.json"
        )
    return files


def read_recorded(path: Path) -> Printed:
    """Return the execution of a history file with its companions, or of an export."""
    text = read_text(path)
    try:
        if path.name.endswith(_HISTORY):
            stem = path.name.removesuffix(_HISTORY)
            machine = path.with_name(f"{stem}machine.json")
            execution = path.with_name(f"{stem}execution.json")
            described = read_text(execution) if execution.exists() else ""
            return read_printed(text, read_text(machine), described)
        return _read_export(text)
    except ValidationException as error:
        raise RecordingError(f"{path}: {error.message}") from None


def _read_export(text: str) -> Printed:
    """Return the execution of an export, which contains its definition."""
    try:
        execution = json.loads(text).get("execution")
    except (ValueError, AttributeError, RecursionError):
        execution = None
    if not isinstance(execution, dict) or not isinstance(execution.get("definition"), str):
        raise ValidationException(
            "got neither a scenario nor an export, wanted one of them or NAME.history.json"
        )
    arn = str(execution.get("stateMachineArn", ""))
    machine = {"definition": execution["definition"], "name": arn.rpartition(":")[2]}
    return read_printed(text, json.dumps(machine), json.dumps(execution))


def read_scenario(file: Path) -> dict[str, Any]:
    """Return the scenario of a file; raise ``RecordingError`` or ``UnfinishedError``."""
    scenario = None if file.name.endswith(_HISTORY) else _as_scenario(file)
    return scenario or make_scenario(read_recorded(file), str(file))


def make_scenario(printed: Printed, place: str) -> dict[str, Any]:
    """Make the scenario of an execution; raise ``RecordingError`` or ``UnfinishedError``."""
    recording = recording_of(printed)
    if recording.status == "RUNNING":
        raise UnfinishedError(f"{place}: got an execution that has not ended, wanted its end, too")
    try:
        return scenario_of(recording)
    except engine.DefinitionError as error:
        raise RecordingError(f"{place}: the definition cannot be run: {error}") from None
    except (ValueError, engine.JsonTextError) as error:
        raise RecordingError(f"{place}: a payload is cut, left out or not JSON: {error}") from None


def _as_scenario(file: Path) -> dict[str, Any] | None:
    """Return a scenario, None for other JSON."""
    text = read_text(file)
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RecordingError(f"{file}: got no JSON: {error}") from None
    return whole if isinstance(whole, dict) and "Scenario" in whole else None
