"""Check a Task's Parameters against the fields of the action in its Resource.

The service rejects a definition with a field that the action does not have. Field names are in
PascalCase, whatever the service's own API uses [measured]. A field whose value is a path
(``Foo.$``) is checked when the task runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine import jsontext
from engine.language.diagnostics import Diagnostic, Problems
from engine.language.model import TaskKind
from engine.language.platform import current_platform
from engine.language.positions import find_positions
from engine.language.resources import parse_resource

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.data.expression import Json

_MOST_SERVICES = 20
"""The maximum number of services looked up for a definition: a hostile one may name hundreds."""


def check_parameters(text: str) -> tuple[Diagnostic, ...]:
    """Return a diagnostic for each field that a Task's action does not have.

    ``text``: a definition without other errors.
    """
    problems = Problems()
    find_unsupported_fields(jsontext.loads(text), problems)
    return tuple(problems.placed(find_positions(text))) if problems.diagnostics else ()


def find_unsupported_fields(definition: Json, problems: Problems) -> None:
    """Report each field that a Task's action does not have."""
    services: set[str] = set()
    for pointer, state in _states(definition, ""):
        arn = state.get("Resource")
        resource = parse_resource(arn) if isinstance(arn, str) else None
        if resource is None or resource.kind is not TaskKind.SERVICE:
            continue
        if resource.service not in services and len(services) >= _MOST_SERVICES:
            continue
        services.add(resource.service)
        for field in ("Parameters", "Arguments"):
            template = state.get(field)
            messages = [
                f'The field "{name}" is not supported by Step Functions'
                for name in current_platform().unsupported_fields(resource, template)
            ]
            for message in (*messages, *current_platform().wrong_values(resource, template)):
                problems.newer_error(f"{pointer}/{field}", message)


def _states(block: Json, pointer: str) -> Iterator[tuple[str, dict[str, Json]]]:
    """Yield each state of a block and its inner blocks, with its pointer."""
    states = block.get("States") if isinstance(block, dict) else None
    for name, state in states.items() if isinstance(states, dict) else ():
        if not isinstance(state, dict):
            continue
        place = f"{pointer}/States/{name}"
        yield place, state
        branches = state.get("Branches")
        for index, branch in enumerate(branches if isinstance(branches, list) else ()):
            yield from _states(branch, f"{place}/Branches[{index}]")
        for field in ("ItemProcessor", "Iterator"):
            yield from _states(state.get(field), f"{place}/{field}")
