"""The check of a Task's Parameters against the action that its Resource names.

The service refuses a definition that gives an action a field which the action does not have; field
names are in PascalCase, whatever the service's own API has [measured]. A field whose value is a
path (``Foo.$``) is judged when the task runs.
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
"""Services whose fields are looked up for one definition: a hostile one may name hundreds."""


def check_parameters(text: str) -> tuple[Diagnostic, ...]:
    """Return the fields that Tasks of a definition must not have.

    ``text``: a definition without other errors.
    """
    problems = Problems()
    find_unsupported_fields(jsontext.loads(text), problems)
    return tuple(problems.placed(find_positions(text))) if problems.diagnostics else ()


def find_unsupported_fields(definition: Json, problems: Problems) -> None:
    """Note the fields that Tasks of a definition must not have."""
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
    """Yield each state of a block and of the blocks in it, with its place."""
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
