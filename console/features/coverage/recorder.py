"""Record the coverage of a test session: engine.run, TestState, replays, and the test server."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any

import engine
from console.features.coverage.measuring import Collection, make_reports
from console.features.coverage.measuring.report import shortfalls
from console.features.coverage.sources import CoverageSettings, add_server, declare_files

if TYPE_CHECKING:
    from collections.abc import Callable

    from console.features.coverage.measuring import CoverageReport
    from console.testing.server import StateyardServer

_MOST_EXECUTIONS = 10_000


class CoverageRecorder:
    """Wraps the engine's functions that run definitions, from ``begin`` to ``end``."""

    def __init__(self) -> None:
        """Create a recorder without executions."""
        self.collection = Collection()
        self._originals: dict[str, Any] = {}

    def begin(self) -> None:
        """Begin to record, whether tests import the functions before or after it."""
        noting: dict[str, Any] = {
            "run": self._note_run,
            "try_state": self._note_trial,
            "replay": self._note_replay,
        }
        for name, note in noting.items():
            self._originals[name] = original = getattr(engine, name)
            setattr(engine, name, _recorded(original, note))

    def end(self) -> None:
        """Stop recording."""
        for name, original in self._originals.items():
            setattr(engine, name, original)

    def _note_run(self, result: engine.Result, definition: Any, *_: Any, **__: Any) -> None:
        text = definition if isinstance(definition, str) else engine.dumps(definition)
        machine = self.collection.machine(text)
        machine.add_runs("engine.run", machine.reader.read(result.events))

    def _note_trial(
        self, trial: engine.Trial, tested: engine.Machine, name: str, *_: Any, **__: Any
    ) -> None:
        machine = self.collection.machine(tested.text)
        machine.add_runs("TestState", machine.reader.read_trial(name, trial))

    def _note_replay(self, _: Any, text: str, definition: str | None = None, *__: Any) -> None:
        if definition is None:
            scenario = engine.loads(text)["Scenario"]
            machine = self.collection.machine(
                engine.dumps(scenario["Definition"]), scenario["Type"]
            )
            machine.add_runs("replays", machine.reader.read(engine.replayed_events(text)))

    def add_server(self, server: StateyardServer) -> None:
        """Add all executions of a server, before it stops."""
        states = server.client()
        pages = states.get_paginator("list_state_machines").paginate()
        arns = [row["stateMachineArn"] for page in pages for row in page["stateMachines"]]
        for arn in arns:
            add_server(self.collection, states, arn, _MOST_EXECUTIONS, declare=False)

    def report(self, settings: CoverageSettings) -> tuple[list[CoverageReport], list[str]]:
        """Return the reports, and a line for each threshold that is not reached.

        Raise ``SourceError`` or ``DefinitionError`` for unreadable definitions.
        """
        collection = Collection()
        declare_files(collection, settings.machines, ())
        collection.add(self.collection)
        reports = make_reports(collection.resolve(), settings.thresholds)
        return reports, shortfalls(reports, settings.thresholds)


def _recorded(original: Callable[..., Any], note: Callable[..., None]) -> Callable[..., Any]:
    @wraps(original)
    def call(*arguments: Any, **more: Any) -> Any:
        result = original(*arguments, **more)
        note(result, *arguments, **more)
        return result

    return call
