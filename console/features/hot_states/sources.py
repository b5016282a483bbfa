"""Choose the executions for the figures: of a revision, a version or an alias.

All of them ran with the same definition, which the page draws.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.db.models import Count, Max, Q

from console.store.machines import versions
from console.web.machines import insight_views, past_executions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from console.models import StateMachine

_MOST_VERSIONS = 50


@dataclass(frozen=True, slots=True)
class ExecutionSource:
    """Executions with the same definition. ``key``: in URLs; ``among``: None for all.

    ``executions``: how many of the last ``past_executions.LOOKED_AT`` there are.
    """

    key: str
    label: str
    sha256: str
    executions: int
    among: Q | None = None


def list_sources(machine: StateMachine) -> list[ExecutionSource]:
    """Return revisions, current first, then aliases and versions with executions."""
    ran = insight_views.ran_definitions(machine)
    revisions = [
        ExecutionSource(f"revision-{each.key}", each.name, each.sha256, each.executions)
        for each in ran
    ]
    return [*revisions, *_aliases(machine), *_versions(machine)]


def chosen_source(sources: Sequence[ExecutionSource], key: str) -> ExecutionSource:
    """Return the source in the URL, else the current revision if executed, else the last used."""
    named = (each for each in sources if each.key == key)
    used = (each for each in sources if each.executions)
    return next(named, None) or next(used, sources[0])


def _aliases(machine: StateMachine) -> list[ExecutionSource]:
    """Return each alias with the definition of its latest execution."""
    named = {row.arn: row.name for row in versions.list_aliases(versions.Target(machine))}
    counted = _counts(machine, "alias_arn", list(named)) if named else {}
    return [
        ExecutionSource(f"alias-{named[arn]}", f"alias {named[arn]}", *counts, Q(alias_arn=arn))
        for arn, counts in counted.items()
    ]


def _versions(machine: StateMachine) -> list[ExecutionSource]:
    listed = versions.list_versions(machine, limit=_MOST_VERSIONS)
    numbers = {row.arn: row.number for row in listed}  # the newest first
    counted = _counts(machine, "version_arn", list(numbers)) if numbers else {}
    return [
        ExecutionSource(
            f"version-{numbers[arn]}", f"version {numbers[arn]}", *counts, Q(version_arn=arn)
        )
        for arn, counts in counted.items()
    ]


def _counts(machine: StateMachine, column: str, arns: list[str]) -> dict[str, tuple[str, int]]:
    """Return ARN -> definition of its latest execution, and the executions with it."""
    recent = past_executions.recent_executions(machine, among=Q(**{f"{column}__in": arns}))
    counted = (
        recent.values(column, "definition_id")
        .annotate(executions=Count("pk"), newest=Max("start_ms"))
        .order_by("-newest")
    )
    last: dict[str, tuple[str, int]] = {}
    for row in counted:
        last.setdefault(row[column], (row["definition_id"], row["executions"]))
    return {arn: last[arn] for arn in arns if arn in last}
