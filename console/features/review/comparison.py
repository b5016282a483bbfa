"""Compare the state machines of two commits: states, fields, problems and permissions."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from enum import StrEnum
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import engine
from console.features.deploy.lint_sources import lint_definition, quoted_placeholders
from console.features.review.sides import document_of, file_of
from console.features.roles.evaluation import RoleAccount, needs_of, resource_words
from console.features.roles.files.source_checks import rehearse, role_problems
from console.features.versions.definition_diff import (
    StateChanges,
    canonical,
    state_changes,
    states_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from console.features.deploy.sources import MachineSource
    from console.features.review.sides import Side

NOTHING: Any = object()
"""The value of a field that a side lacks."""
_KEYS = ("ErrorEquals", "Next", "StartAt")
_INDEX = re.compile(r"\[\d+\]")


class ReviewKind(StrEnum):
    """The kind of change of a state machine or trigger."""

    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"
    HIDDEN = "hidden"
    """One side cannot be read, so the change is unknown."""


@dataclass(frozen=True, slots=True)
class FieldChange:
    """A changed field. ``path``: ``Retry[1].MaxAttempts``; values: JSON, or ``NOTHING``."""

    path: str
    before: Any
    after: Any


@dataclass(frozen=True, slots=True)
class Permission:
    """An IAM action and its resource, with the names of the states that need it."""

    action: str
    resource: str
    states: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MachineReview:
    """The changes of a state machine.

    ``states``: None if a definition is not JSON; ``fields``: by state, "" for the state machine's
    own; ``problems``: new lint problems; ``mended``: number of solved problems. ``needed``,
    ``dropped``: permissions.
    """

    name: str
    kind: ReviewKind
    before: MachineSource | None
    after: MachineSource | None
    states: StateChanges | None = None
    fields: Mapping[str, Sequence[FieldChange]] = field(default_factory=dict)
    problems: Sequence[Any] = ()
    mended: int = 0
    needed: Sequence[Permission] = ()
    dropped: Sequence[Permission] = ()

    @property
    def former_name(self) -> str:
        """Return the name before the change, "" if it is the same."""
        if self.before is None or self.after is None or self.before.name == self.after.name:
            return ""
        return self.before.name


def compare_machines(
    before: Side, after: Side, renames: Mapping[str, str]
) -> Iterator[MachineReview]:
    """Yield the changes of each changed state machine.

    ``renames``: new path of a file -> former path.
    """
    former = _former_names(before, after, renames)
    names = {**after.machines, **before.machines}
    for name in sorted(names.keys() - former.values()):
        pair = before.machines.get(former.get(name, name)), after.machines.get(name)
        present = pair[1] or pair[0]
        if present is not None and None in pair and _hidden(before, after, pair):
            yield MachineReview(name, ReviewKind.HIDDEN, *pair)
        elif _text_of(pair[0]) != _text_of(pair[1]):
            yield _review(name, *pair)


def _hidden(
    before: Side, after: Side, pair: tuple[MachineSource | None, MachineSource | None]
) -> bool:
    old, new = pair
    if new is None:
        return old is not None and after.hides(old)
    return before.hides(new)


def _former_names(before: Side, after: Side, renames: Mapping[str, str]) -> dict[str, str]:
    """Return key -> former key of state machines whose file or name changed."""
    gone = {key: source for key, source in before.machines.items() if key not in after.machines}
    former: dict[str, str] = {}
    for key, source in after.machines.items():
        if key in before.machines:
            continue
        file = file_of(source)
        place = renames.get(file, file) + source.place.removeprefix(file)
        words = source.definition.split()
        same = [old for old, other in gone.items() if other.place == place]
        same += [old for old, other in gone.items() if other.definition.split() == words]
        if same:
            former[key] = same[0]
            del gone[same[0]]
    return former


def _text_of(source: MachineSource | None) -> str | None:
    """Return everything of a state machine that is compared, as text."""
    if source is None:
        return None
    document = document_of(source)
    return canonical(
        [source.name, document if document is not None else source.definition, _settings(source)]
    )


def _settings(source: MachineSource) -> dict[str, Any]:
    policies, options = source.policies, source.options
    settings = {
        "Role": source.role,
        "Tags": source.tags,
        "Tracing": source.tracing,
        "Logs": options.logs,
        "KmsKey": options.key,
        "Policies": [policy for _, policy in policies.documents] if policies else None,
        "UnreadPolicies": [
            gap.removeprefix(f"{file_of(source)}: ") for gap in (policies and policies.gaps) or ()
        ],
        "PermissionsBoundary": [policy for _, policy in (policies and policies.boundary) or ()],
    }
    return {"Type": source.type} | {name: value for name, value in settings.items() if value}


def _review(name: str, before: MachineSource | None, after: MachineSource | None) -> MachineReview:
    old, new = document_of(before), document_of(after)
    kind = ReviewKind.CHANGED
    if before is None or after is None:
        kind = ReviewKind.ADDED if before is None else ReviewKind.REMOVED
    problems, mended = _new_problems(before, after)
    readable = all(
        source is None or document is not None for source, document in ((before, old), (after, new))
    )
    needed, dropped = _permission_changes(before, after) if readable else ([], [])
    states, fields = None, {}
    if before is not None and after is not None and old is not None and new is not None:
        states = state_changes(engine.dumps(old), engine.dumps(new))
        fields = _machine_fields(before, after, old, new)
    return MachineReview(
        *(name, kind, before, after),
        states=states,
        fields=fields,
        problems=problems,
        mended=mended,
        needed=needed,
        dropped=dropped,
    )


# -- fields ----------------------------------------------------------------------------------------


def _machine_fields(
    before: MachineSource, after: MachineSource, old: dict[str, Any], new: dict[str, Any]
) -> dict[str, list[FieldChange]]:
    outer_old, outer_new = (
        {**_settings(source), **{key: value for key, value in document.items() if key != "States"}}
        for source, document in ((before, old), (after, new))
    )
    fields = {"": list(field_changes(outer_old, outer_new))}
    former = states_of(old)
    for name, (place, state) in states_of(new).items():
        if name not in former:
            continue
        former_place, former_state = former[name]
        changes = list(field_changes(former_state, state))
        if former_place != place:
            changes.insert(0, FieldChange("", _place_words(former_place), _place_words(place)))
        fields[name] = changes
    return {name: changes for name, changes in fields.items() if changes}


def _place_words(place: Any) -> str:
    return f"branch {place[1] + 1} of {place[0]}" if place else "the top level"


def field_changes(before: Any, after: Any, path: str = "") -> Iterator[FieldChange]:
    """Yield the changed fields of two JSON values; list items are matched by content."""
    if canonical_or_none(before) == canonical_or_none(after):
        return
    if isinstance(before, dict) and isinstance(after, dict):
        for key in dict.fromkeys([*before, *after]):
            place = f"{path}.{key}" if path else str(key)
            yield from field_changes(before.get(key, NOTHING), after.get(key, NOTHING), place)
    elif isinstance(before, list) and isinstance(after, list):
        keys = [_item_key(item) for item in before], [_item_key(item) for item in after]
        for _, a, a_end, b, b_end in SequenceMatcher(None, *keys, False).get_opcodes():
            pairs = zip_longest(range(a, a_end), range(b, b_end))
            for old, new in pairs:
                number = new if new is not None else old
                yield from field_changes(
                    NOTHING if old is None else before[old],
                    NOTHING if new is None else after[new],
                    f"{path}[{number}]",
                )
    else:
        yield FieldChange(path, before, after)


def _item_key(item: Any) -> str:
    """Return the identity of a list item: a Retrier's errors, or the whole item."""
    keys = (item[key] for key in _KEYS if key in item) if isinstance(item, dict) else iter(())
    return canonical(next(keys, item))


def canonical_or_none(value: Any) -> str | None:
    """Return the text of a value, None for ``NOTHING``."""
    return None if value is NOTHING else canonical(value)


# -- problems and permissions ----------------------------------------------------------------------


def _new_problems(
    before: MachineSource | None, after: MachineSource | None
) -> tuple[list[Any], int]:
    """Return the new problems, and the number of solved problems."""
    old, new = (_problems(source) for source in (before, after))
    remaining = Counter(_problem_key(problem) for problem in old)
    fresh = []
    for problem in new:
        key = _problem_key(problem)
        if remaining[key]:
            remaining[key] -= 1
        else:
            fresh.append(problem)
    return fresh, sum(remaining.values()) if after is not None else 0


def _problems(source: MachineSource | None) -> list[Any]:
    """Return the problems that ``lint`` reports, including those of a role in the files."""
    if source is None:
        return []
    problems = lint_definition(source.definition, source.type)
    if source.policies is None or document_of(source) is None:
        return problems
    (report,) = rehearse([source], None, RoleAccount())
    return [*problems, *role_problems(report, engine.Severity.WARNING)]


def _problem_key(problem: Any) -> tuple[str, str, str]:
    """Return the part of a problem that other changes of the definition leave unchanged."""
    return problem.code, _INDEX.sub("[]", problem.message), _INDEX.sub("[]", problem.location)


def _permission_changes(
    before: MachineSource | None, after: MachineSource | None
) -> tuple[list[Permission], list[Permission]]:
    old, new = _needed_permissions(before), _needed_permissions(after)
    return _permissions_without(new, old), _permissions_without(old, new)


def _needed_permissions(source: MachineSource | None) -> dict[tuple[str, str], list[str]]:
    """Return (action, resource) -> names of the states that need it, "" for the state machine.

    For an unknown call, the call stands in place of the action.
    """
    needed: dict[tuple[str, str], list[str]] = {}
    if source is not None:
        text = quoted_placeholders(source.definition)
        for need in needs_of(text, source.name, RoleAccount(), source.options):
            if not (need.action and need.reason):  # with a reason it may not be needed
                key = need.action or need.call, resource_words(need.resource)
                needed.setdefault(key, []).append(need.state)
    return needed


def _permissions_without(
    needed: Mapping[tuple[str, str], list[str]], other: Mapping[tuple[str, str], list[str]]
) -> list[Permission]:
    return [
        Permission(*key, tuple(states))
        for key, states in sorted(needed.items())
        if key not in other
    ]


def compare_triggers(before: Side, after: Side) -> Iterator[tuple[str, str, list[FieldChange]]]:
    """Yield kind, name and changed fields of each rule, schedule and activity that differs.

    An added or removed trigger has one change, with the path "".
    """
    for kind, name in sorted({**before.triggers, **after.triggers}):
        old, new = (side.triggers.get((kind, name), NOTHING) for side in (before, after))
        changes = list(field_changes(old, new))
        if changes:
            yield kind, name, changes
