"""Search the reader's other projects by name or ARN, for the palette.

Names are searched in the page's region, ARNs in every region. Each search is limited as in
``matches``, whatever the number of projects.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

from django.db.models import Case, Value, When

from console import arns
from console.access import Principal
from console.db.branch_names import MARK
from console.feature import has_feature
from console.features.alarms.models import Alarm
from console.features.palette.matches import NEWEST, Match, MatchGroup, address_in, rank_of
from console.models import Activity, EventRule, Execution, Membership, StateMachine
from console.statuses import MachineStatus
from console.web.core import formatting
from console.web.core.scope import Scope
from console.web.search import scan

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.db.models import QuerySet

MOST = 12
"""The maximum number of matches of each kind, of all other projects together."""
_MACHINES = 500
"""The number of latest state machines in which an execution is searched by its whole name."""


def find_elsewhere(scope: Scope, text: str) -> list[MatchGroup]:
    """Return a group of matches for each other project, best group first.

    Branches have copies of the state machines of their parents: only an ARN finds something in one.
    """
    if not text or len(scope.principal.projects) <= 1:
        return []
    members = Membership.objects.filter(user=scope.principal.user).exclude(project=scope.project)
    if not text.startswith("arn:"):
        members = members.exclude(project__name__contains=MARK)
    scopes = {
        member.project_id: Scope.of(
            Principal(scope.principal.user, member.project, member.role), scope.region
        )
        for member in members.select_related("project").order_by("pk")
    }
    search = _Search(scopes, text, scope.region)
    matches_of: dict[int, list[Match]] = {}
    for project, match in chain(
        search.machines(), search.executions(), search.rules(), search.alarms(), search.activities()
    ):
        matches_of.setdefault(project, []).append(match)
    groups = [
        MatchGroup(f"In the project {scopes[project].project.name}", tuple(matches))
        for project, matches in matches_of.items()
    ]
    return sorted(
        groups, key=lambda group: min(rank_of(each.title, text) for each in group.matches)
    )


class _Search:
    """A text, and the scopes of the searched projects."""

    def __init__(self, scopes: dict[int, Scope], text: str, region: str) -> None:
        self._scopes, self._text, self._region = scopes, text, region
        self._is_arn = text.startswith("arn:")

    def machines(self) -> Iterator[tuple[int, Match]]:
        """Yield project and match of state machines."""
        rows = StateMachine.objects.filter(status=MachineStatus.ACTIVE)
        for row in self._best_rows(rows):
            yield self._match(row, row.name, "workflow", "machine", row.name)

    def executions(self) -> Iterator[tuple[int, Match]]:
        """Yield project and match of executions, by whole name or ARN."""
        executions = Execution.objects.filter(project__in=self._scopes).defer(*scan.BARE)
        if self._is_arn:
            executions = executions.filter(arn=self._text)
        else:
            machines = StateMachine.objects.filter(project__in=self._scopes, region=self._region)
            machine_arns = machines.order_by("-pk").values_list("arn", flat=True)[:_MACHINES]
            executions = executions.filter(
                arn__in=[arns.execution_arn(arn, self._text) for arn in machine_arns]
            )
        for row in executions[:MOST]:
            machine = row.state_machine_arn.rpartition(":")[2]
            address = ("execution", machine.replace("/", "~"), row.name)
            status = formatting.EXECUTION[row.status]
            more: dict[str, Any] = {"note": machine, "status": status, "start_ms": row.start_ms}
            yield self._match(row, row.name, "play", *address, **more)

    def rules(self) -> Iterator[tuple[int, Match]]:
        """Yield project and match of rules, and of schedules of EventBridge Scheduler."""
        if not has_feature("notifications"):
            return
        for row in self._best_rows(EventRule.objects.filter(schedule_group="")):
            icon = "calendar-clock" if row.schedule else "bell"
            yield self._match(row, row.name, icon, "rule", row.name, note=row.schedule)
        for row in self._best_rows(EventRule.objects.exclude(schedule_group=""), "schedule_name"):
            names = (row.schedule_group, row.schedule_name)
            yield self._match(row, row.schedule_name, "calendar-clock", "schedule", *names)

    def alarms(self) -> Iterator[tuple[int, Match]]:
        """Yield project and match of alarms."""
        for row in self._best_rows(Alarm.objects.all()) if has_feature("alarms") else ():
            yield self._match(row, row.name, "bell-ring", "alarm", str(row.pk))

    def activities(self) -> Iterator[tuple[int, Match]]:
        """Yield project and match of activities."""
        for row in self._best_rows(Activity.objects.all()) if has_feature("tasks") else ():
            yield self._match(row, row.name, "activity", "activity", row.name)

    def _best_rows(self, rows: QuerySet[Any], field: str = "name") -> list[Any]:
        """Return the best of the latest rows by name, or the row of an ARN."""
        rows = rows.filter(project__in=self._scopes)
        if self._is_arn:
            return list(rows.filter(arn=self._text))
        rows = rows.filter(region=self._region)
        newest = rows.order_by("-pk").values("pk")[:NEWEST]
        begins = When(**{f"{field}__istartswith": self._text}, then=Value(1))
        named = rows.filter(**{"pk__in": newest, f"{field}__icontains": self._text})
        return list(named.order_by(Case(begins, default=Value(2)), field)[:MOST])

    def _match(
        self, row: Any, title: str, icon: str, view: str, *names: str, **more: Any
    ) -> tuple[int, Match]:
        scope = self._scopes[row.project_id]
        region = row.arn.split(":", 4)[3]
        address = address_in(Scope.of(scope.principal, region), view, *names)
        return row.project_id, Match(title, address, icon, project=scope.project.name, **more)
