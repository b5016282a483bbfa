"""Collect what executions reached, by definition, and store it as a result file."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import msgspec

import engine
from console.cli.documents import SourceError
from console.errors import ValidationException
from console.features.test_state.scenarios.files import RecordingError, read_recorded
from console.masking.mask import MASK
from console.recordings import printed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

FORMAT = "stateyard-coverage-1"
_PLACEHOLDER = re.compile(r"\$\{[^{}]+\}|\{\{resolve:[^{}]+\}\}")
_HISTORY = "history.json"


_MOST_SHOWN = 60
_NO_ENTRY = (AttributeError, KeyError, TypeError, ValueError)
"""The exceptions for a result file with missing or wrong fields."""


class CoverageFileError(SourceError, ValueError):
    """A file is not coverage or a history; the text says what it is."""


@dataclass
class MachineCoverage:
    """A definition and the points that its executions reached.

    ``name``: "" if no file or server has the definition; ``place``: its file, "" without one.
    ``source``: the definition in the file, with placeholders. ``runs``: source -> number of
    executions. ``reached``, ``uncertain``: keys of points. ``limits``: the nearest value of each
    AWS limit.
    """

    definition: str
    kind: str = "STANDARD"
    name: str = ""
    place: str = ""
    source: str = ""
    runs: Counter[str] = field(default_factory=Counter)
    reached: set[str] = field(default_factory=set)
    uncertain: set[str] = field(default_factory=set)
    limits: dict[tuple[str, str, str], engine.LimitAhead] = field(default_factory=dict)

    @cached_property
    def reader(self) -> engine.CoverageReader:
        """Return the reader of its histories; raise ``engine.DefinitionError``."""
        return engine.CoverageReader(engine.parse_stored(self.definition, self.kind))

    @property
    def label(self) -> str:
        """Return its name; without one a digest and the first state of the definition."""
        if self.name:
            return self.name
        digest = sha256(self.definition.encode()).hexdigest()[:8]
        return f"definition {digest} ({json.loads(self.definition)['StartAt']})"

    def add_runs(self, source: str, reached: engine.Reached, runs: int = 1) -> None:
        """Add executions' reached points. ``source``: where they ran, as ``engine.run``."""
        self.runs[source] += runs
        self.reached |= reached.keys
        self.uncertain |= reached.uncertain
        self.add_limits(reached.limits)

    def add_limits(self, limits: Iterable[engine.LimitAhead]) -> None:
        """Add limits that executions came near."""
        for limit in limits:
            if limit.key not in self.limits or self.limits[limit.key].value < limit.value:
                self.limits[limit.key] = limit

    def matches(self, definition: str) -> bool:
        """Return whether this is a definition; placeholders in a file match any text."""
        pattern = json.loads(self.source or self.definition)
        return _is_like(pattern, json.loads(definition))


class Collection:
    """The coverage of several state machines, from several sources."""

    def __init__(self) -> None:
        """Create an empty collection."""
        self._machines: dict[str, MachineCoverage] = {}
        self._twins: dict[str, MachineCoverage] = {}  # further names of one definition

    @property
    def machines(self) -> Sequence[MachineCoverage]:
        """Return the state machines, in the order added."""
        return list(self._machines.values())

    def machine(self, definition: str, kind: str = "STANDARD") -> MachineCoverage:
        """Return the entry of a definition, a new one if needed; layout is ignored."""
        key = json.dumps(json.loads(definition), sort_keys=True)
        machine = self._machines.get(key)
        if machine is None:
            machine = self._machines[key] = MachineCoverage(definition, kind)
        return machine

    def declare(
        self, name: str, definition: str, kind: str, *, place: str = "", source: str = ""
    ) -> MachineCoverage:
        """Add a state machine of a file or server, to report it even without executions.

        Raise ``CoverageFileError`` if another definition has this name.
        """
        machine = self.machine(definition, kind)
        for other in (*self.machines, *self._twins.values()):
            if other.name == name and other.definition != machine.definition:
                raise CoverageFileError(
                    f"{name}: got two definitions, from {place or 'the server'} and from "
                    f"{other.place or 'the server'}, wanted one"
                )
        if machine.name not in ("", name):
            self._twins[name] = replace(machine, name=name, place=place, source=source)
        else:
            machine.name, machine.place, machine.source = name, place or machine.place, source
        return machine

    def _name(self, machine: MachineCoverage, name: str) -> None:
        """Name a machine of a result file, unless another definition has the name already."""
        if not machine.name and all(other.name != name for other in self.machines):
            machine.name = name

    def add(self, other: Collection) -> None:
        """Merge another collection into this one."""
        for entry in other.machines:
            machine = self.machine(entry.definition, entry.kind)
            self._name(machine, entry.name)
            machine.runs += entry.runs
            machine.reached |= entry.reached
            machine.uncertain |= entry.uncertain
            machine.add_limits(entry.limits.values())

    def resolve(self) -> list[MachineCoverage]:
        """Return the reported state machines, each with the runs of all matching definitions.

        If none is declared, all definitions that ran are reported.
        """
        declared = [
            replace(
                machine,
                runs=+machine.runs,
                reached={*machine.reached},
                limits=dict(machine.limits),
            )
            for machine in self.machines
            if machine.name
        ]
        others = [machine for machine in self.machines if not machine.name]
        if not declared:
            return others
        for other in others:
            for machine in declared:
                if machine.matches(other.definition):
                    machine.runs += other.runs
                    machine.reached |= other.reached
                    machine.uncertain = machine.uncertain | other.uncertain
                    machine.add_limits(other.limits.values())
        twins = [
            replace(machine, name=twin.name, place=twin.place, source=twin.source)
            for twin in self._twins.values()
            for machine in declared
            if machine.definition == twin.definition
        ]
        return [*declared, *twins]

    def unmatched(self) -> int:
        """Return the number of executions whose definition matches no declared one."""
        declared = [machine for machine in self.machines if machine.name]
        return sum(
            other.runs.total()
            for other in self.machines
            if declared
            and not other.name
            and not any(machine.matches(other.definition) for machine in declared)
        )

    def add_recorded(self, document: Mapping[str, Any], path: Path) -> bool:
        """Add a history whose definition is in the same file (an export) or in a file beside it.

        ``document``: the parsed file. Return whether a definition was found; raise
        ``CoverageFileError``.
        """
        machine_file = path.with_name(path.name.removesuffix(_HISTORY) + "machine.json")
        beside = path.name.endswith(_HISTORY) and machine_file.is_file()
        if "execution" not in document and not beside:
            return False
        try:
            recorded = read_recorded(path)
        except RecordingError as error:
            raise CoverageFileError(str(error)) from None
        machine = self.machine(recorded.definition, recorded.machine.get("type", "STANDARD"))
        events = read_events(document["events"], str(path))
        machine.add_runs("histories", machine.reader.read(events))
        return True

    # -- the file ----------------------------------------------------------------------------------

    def write_text(self) -> str:
        """Return the collection as the text of a result file."""
        machines = [
            {
                "name": machine.name,
                "type": machine.kind,
                "definition": json.loads(machine.definition),
                "runs": dict(machine.runs),
                "reached": sorted(machine.reached),
                "uncertain": sorted(machine.uncertain - machine.reached),
                "limits": [limit.as_json() for limit in machine.limits.values()],
            }
            for machine in self.machines
        ]
        return json.dumps({"format": FORMAT, "machines": machines}, indent=1, ensure_ascii=False)

    def read_document(self, document: Any, place: str) -> None:
        """Add a parsed result file; raise ``CoverageFileError``."""
        if not isinstance(document, dict) or document.get("format") != FORMAT:
            got = document.get("format") if isinstance(document, dict) else None
            raise CoverageFileError(f"{place}: format: got {got!r}, wanted {FORMAT!r}")
        entries = document.get("machines")
        if not isinstance(entries, list):
            got = json.dumps(entries)[:_MOST_SHOWN]
            raise CoverageFileError(f"{place}: machines: got {got}, wanted a list")
        for number, entry in enumerate(entries):
            try:
                machine = self.machine(json.dumps(entry["definition"]), entry["type"])
                keys = {point.key for point in machine.reader.points}
                self._name(machine, entry["name"])
                machine.runs += Counter(entry["runs"])
                reached, uncertain = set(entry["reached"]), set(entry["uncertain"])
                limits = entry.get("limits", ())  # an earlier version wrote none
                machine.add_limits([engine.LimitAhead.from_json(limit) for limit in limits])
            except (*_NO_ENTRY, engine.DefinitionError) as error:
                text = f"{place}: machines[{number}]: got {type(error).__name__} {error}"
                raise CoverageFileError(f"{text}, wanted the entry of a result file") from None
            if unknown := sorted((reached | uncertain) - keys):
                text = f"{place}: machines[{number}]: got the point {unknown[0]!r}"
                raise CoverageFileError(f"{text}, wanted one of its definition")
            machine.reached |= reached
            machine.uncertain |= uncertain


def _is_like(pattern: Any, value: Any) -> bool:
    if isinstance(pattern, dict) and isinstance(value, dict):
        return pattern.keys() == value.keys() and all(
            _is_like(part, value[key]) for key, part in pattern.items()
        )
    if isinstance(pattern, list) and isinstance(value, list):
        pairs = zip(pattern, value, strict=False)
        return len(pattern) == len(value) and all(_is_like(*pair) for pair in pairs)
    if isinstance(pattern, str) and _PLACEHOLDER.fullmatch(pattern):
        return True
    if isinstance(pattern, str) and isinstance(value, str) and _PLACEHOLDER.search(pattern):
        parts = map(re.escape, _PLACEHOLDER.split(pattern))
        return re.fullmatch(".*".join(parts), value, re.DOTALL) is not None
    return bool(pattern == value)


# -- histories -------------------------------------------------------------------------------------


def read_events(entries: Sequence[Any], place: str) -> list[engine.Event]:
    """Parse GetExecutionHistory events, as returned by boto3 or printed by the AWS CLI.

    Raise ``CoverageFileError`` for an incomplete history.
    """
    if not isinstance(entries, list) or not entries:
        got = json.dumps(entries)[:_MOST_SHOWN]
        raise CoverageFileError(f"{place}: events: got {got}, wanted a list of events")
    try:
        events = printed.read_events(entries)
    except ValidationException as error:
        raise CoverageFileError(f"{place}: {error.message}") from None
    return [_without_masked(event) for event in events]


def _without_masked(event: engine.Event) -> engine.Event:
    details = event.details or {}
    if MASK not in details.get("input", ""):
        return event
    rest = {name: value for name, value in details.items() if name != "input"}
    return msgspec.structs.replace(event, details=rest)
