"""Find matches of a text for the palette: state machines, executions, rules, people, pages.

Every search is limited, so that a key press costs the same in a large project: executions are
searched by part of name among the latest ``scan.WINDOW``, by whole name among all; rules,
schedules, alarms and activities among the latest ``NEWEST``, by ARN among all.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from django.db.models import Case, Value, When
from django.http import QueryDict
from django.urls import reverse

from console.feature import has_feature
from console.features.alarms.models import Alarm
from console.models import Activity, EventRule, Execution, Membership, StateMachine
from console.statuses import MachineStatus
from console.web.core import formatting, rights
from console.web.search import filter_words, lists, scan
from console.web.search.filters import ExecutionFilters

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from django.db.models import QuerySet

    from console.web.core.scope import Scope

MOST = 6
"""The maximum number of matches of each kind."""
LONGEST = 512
"""The number of characters of a text that are searched: an ARN has no more."""
NEWEST = 2_000
"""The number of latest rules, schedules, alarms and activities in which a name is searched."""
_DEFINITIONS = 40
"""The number of matching definitions, of the newest machines, in which states are searched."""


@dataclass(frozen=True, slots=True)
class Match:
    """One match. ``note``: its context.

    ``status`` and ``start_ms``: an execution's. ``project``: another project of the reader, which
    opens with the address; "" for the project of the page.
    """

    title: str
    address: str
    icon: str
    note: str = ""
    status: formatting.StatusLabel | None = None
    start_ms: int | None = None
    project: str = ""


@dataclass(frozen=True, slots=True)
class MatchGroup:
    """Matches of one kind, best first."""

    title: str
    matches: tuple[Match, ...]


def find_matches(scope: Scope, text: str) -> list[MatchGroup]:
    """Return the groups of matches, best group first.

    An empty text means the state machines that changed last and the actions of the reader, then
    the newest executions, and every page.
    """
    if not text:
        first = [
            MatchGroup("State machines", tuple(_changed_machines(scope))),
            MatchGroup("Actions", tuple(_actions(scope, text))),
            MatchGroup("Executions", tuple(_executions(scope, text))),
            MatchGroup("Pages", tuple(_destinations(scope, PAGES, text))),
        ]
        return [group for group in first if group.matches]
    groups = [
        MatchGroup("Search", tuple(_searches(scope, text))),
        MatchGroup("State machines", tuple(_machines(scope, text))),
        MatchGroup("Executions", tuple(_executions(scope, text))),
        MatchGroup("States", tuple(_states(scope, text))),
        MatchGroup("Rules", tuple(_rules(scope, text))),
        MatchGroup("Schedules", tuple(_schedules(scope, text))),
        MatchGroup("Alarms", tuple(_alarms(scope, text))),
        MatchGroup("Activities", tuple(_activities(scope, text))),
        MatchGroup("Pages", tuple(_destinations(scope, PAGES, text))),
        MatchGroup("Actions", tuple(_actions(scope, text))),
        MatchGroup("People", tuple(_people(scope, text))),
    ]
    return sorted(
        (group for group in groups if group.matches),
        key=lambda group: min(rank_of(match.title, text) for match in group.matches),
    )


def rank_of(title: str, text: str) -> int:
    """Return 0 for the exact name, 1 for a prefix, 2 for another part."""
    name, sought = title.casefold(), text.casefold()
    return 0 if name == sought else 1 if name.startswith(sought) else 2


def _best(titles: Iterable[str], text: str) -> list[str]:
    return sorted(set(titles), key=lambda title: (rank_of(title, text), title))


def address_in(scope: Scope, view: str, *names: str, **query: str) -> str:
    """Return the URL of a page, with the region if it is not the default."""
    if scope.elsewhere:
        query["region"] = scope.region
    return reverse(view, args=names) + (f"?{urlencode(query)}" if query else "")


# -- machines and their states ---------------------------------------------------------------------


def _machine_names(scope: Scope, text: str) -> list[str]:
    rows = StateMachine.objects.filter(project=scope.project, status=MachineStatus.ACTIVE)
    if text.startswith("arn:"):
        return list(rows.filter(arn=text).values_list("name", flat=True))
    rows = rows.filter(region=scope.region, name__icontains=text)
    starting = rows.filter(name__istartswith=text).order_by("name")[:MOST]
    containing = rows.order_by("name")[:MOST]
    names = [row.name for row in (*starting, *containing)]
    return _best(names, text)[:MOST]


def _changed_machines(scope: Scope) -> Iterator[Match]:
    rows = StateMachine.objects.filter(
        project=scope.project, region=scope.region, status=MachineStatus.ACTIVE
    )
    for name in rows.order_by("-updated_ms", "name").values_list("name", flat=True)[:MOST]:
        yield Match(name, address_in(scope, "machine", name), "workflow")


def _machines(scope: Scope, text: str) -> Iterator[Match]:
    for name in _machine_names(scope, text):
        address = reverse("arn", args=[text]) if text.startswith("arn:") else ""
        yield Match(name, address or address_in(scope, "machine", name), "workflow")


def _states(scope: Scope, text: str) -> Iterator[Match]:
    if not text or text.startswith("arn:"):
        return
    written = json.dumps(text)[1:-1]
    rows = StateMachine.objects.filter(
        project=scope.project,
        region=scope.region,
        status=MachineStatus.ACTIVE,
        definition__text__icontains=written,
    ).order_by("-pk")
    pairs = [
        (state, machine)
        for machine, definition in rows.values_list("name", "definition__text")[:_DEFINITIONS]
        for state in set(_state_names(json.loads(definition)))
        if text.casefold() in state.casefold()
    ]
    pairs.sort(key=lambda pair: (rank_of(pair[0], text), *pair))
    for state, machine in pairs[:MOST]:
        yield Match(
            state, address_in(scope, "definition", machine, state=state), "square-dot", machine
        )


def _state_names(value: Any) -> Iterator[str]:
    """Return the names of all states of a definition, at any depth."""
    states = value.get("States") if isinstance(value, dict) else None
    for name, state in states.items() if isinstance(states, dict) else ():
        yield name
        if isinstance(state, dict):
            inner = (state.get("ItemProcessor"), state.get("Iterator"))
            for part in (*inner, *(state.get("Branches") or ())):
                yield from _state_names(part)


# -- executions ------------------------------------------------------------------------------------


def _executions(scope: Scope, text: str) -> Iterator[Match]:
    executions = _found_executions(scope, text)
    for execution in executions[:MOST]:
        machine = execution.state_machine_arn.rpartition(":")[2]
        if text == execution.arn:
            address = reverse("arn", args=[text])
        else:
            address = address_in(scope, "execution", machine.replace("/", "~"), execution.name)
        status = formatting.EXECUTION[execution.status]
        yield Match(execution.name, address, "play", machine, status, execution.start_ms)
    if text and len(executions) > MOST:
        every = address_in(scope, "executions", q=text)
        yield Match(f"Executions with a name containing “{text}”", every, "list-checks")


def _searches(scope: Scope, text: str) -> Iterator[Match]:
    """Yield the execution search of a text with conditions, or its error."""
    if not filter_words.OPERATOR.search(text):
        return
    filters = ExecutionFilters.of(QueryDict(urlencode({"find": text})))
    if not (filters.find.conditions or filters.problems):
        return
    words = filters.problems.get("find") or filter_words.understood_words(filters)
    yield Match(f"Executions: {words}", address_in(scope, "executions", find=text), "search")


def _found_executions(scope: Scope, text: str) -> list[Execution]:
    rows = Execution.objects.filter(project=scope.project).defer(*scan.BARE)
    if text.startswith("arn:"):
        return list(rows.filter(arn=text))
    exact: list[Execution] = []
    if text:  # an index knows every ARN: also an old execution is found by its whole name
        names = lists.machine_names(scope)
        exact = list(rows.filter(arn__in=[scope.arn("execution", name, text) for name in names]))
    numbers = {execution.pk for execution in exact}
    page = scan.find_executions(scope, None, ExecutionFilters(search=text))
    newest = [execution for execution in page.rows if execution.pk not in numbers]
    return [*exact, *sorted(newest, key=lambda execution: rank_of(execution.name, text))]


# -- rules, schedules, alarms, activities ----------------------------------------------------------


def _named_rows(scope: Scope, rows: QuerySet[Any], text: str, field: str = "name") -> list[Any]:
    """Return the best of the latest rows by name, or the row of an ARN, in one query."""
    if not text:
        return []
    rows = rows.filter(project=scope.project)
    if text.startswith("arn:"):
        return list(rows.filter(arn=text))
    rows = rows.filter(region=scope.region)
    newest = rows.order_by("-pk").values("pk")[:NEWEST]
    rank = Case(When(**{f"{field}__istartswith": text}, then=Value(1)), default=Value(2))
    named = rows.filter(**{"pk__in": newest, f"{field}__icontains": text})
    return list(named.order_by(rank, field)[:MOST])


def _arn_address(scope: Scope, text: str, view: str, *names: str) -> str:
    """Return the URL of a row; for a pasted ARN in the ARN's region."""
    return (
        reverse("arn", args=[text]) if text.startswith("arn:") else address_in(scope, view, *names)
    )


def _rules(scope: Scope, text: str) -> Iterator[Match]:
    if not has_feature("notifications"):
        return
    for rule in _named_rows(scope, EventRule.objects.filter(schedule=""), text):
        yield Match(rule.name, _arn_address(scope, text, "rule", rule.name), "bell")


def _schedules(scope: Scope, text: str) -> Iterator[Match]:
    """Yield rules with a schedule, and schedules of EventBridge Scheduler."""
    if not has_feature("notifications"):
        return
    rows = EventRule.objects.exclude(schedule="")
    of_rules = _named_rows(scope, rows.filter(schedule_group=""), text)
    of_groups = _named_rows(scope, rows.exclude(schedule_group=""), text, "schedule_name")
    shown = [(rule.name, "rule", [rule.name], rule.schedule) for rule in of_rules]
    shown += [
        (rule.schedule_name, "schedule", [rule.schedule_group, rule.schedule_name], rule.schedule)
        for rule in of_groups
    ]
    shown.sort(key=lambda each: (rank_of(each[0], text), each[0]))
    for name, view, names, expression in shown[:MOST]:
        yield Match(name, _arn_address(scope, text, view, *names), "calendar-clock", expression)


def _alarms(scope: Scope, text: str) -> Iterator[Match]:
    if not has_feature("alarms"):
        return
    for alarm in _named_rows(scope, Alarm.objects.select_related("machine"), text):
        note = alarm.machine.name if alarm.machine else ""
        yield Match(
            alarm.name, _arn_address(scope, text, "alarm", str(alarm.pk)), "bell-ring", note
        )


def _activities(scope: Scope, text: str) -> Iterator[Match]:
    if not has_feature("tasks"):
        return
    for activity in _named_rows(scope, Activity.objects.all(), text):
        address = _arn_address(scope, text, "activity", activity.name)
        yield Match(activity.name, address, "activity")


# -- pages, actions, people ------------------------------------------------------------------------


def _destinations(scope: Scope, destinations: Iterable[Destination], text: str) -> Iterator[Match]:
    words = text.casefold().split()
    listed = [
        destination
        for destination in destinations
        if destination.view in rights.PAGES  # of no feature that is left out
        and (not destination.feature or has_feature(destination.feature))
        and scope.may(destination.action)
        and all(word in f"{destination.title} {destination.keywords}".casefold() for word in words)
    ]
    for destination in sorted(listed, key=lambda each: rank_of(each.title, text)):
        address = address_in(scope, destination.view, **dict(destination.query))
        yield Match(destination.title, address, destination.icon)


def _actions(scope: Scope, text: str) -> Iterator[Match]:
    yield from _destinations(scope, ACTIONS, text)
    if not text or text.startswith("arn:"):
        return
    verb, _, name = text.partition(" ")
    machine_text = name.strip() if verb.casefold() in ("start", "edit") else text
    offered = (
        ("Start", "start", "play", "StartExecution"),
        ("Edit", "edit", "pencil", "UpdateStateMachine"),
    )
    for machine in _machine_names(scope, machine_text)[:3]:
        for word, view, icon, action in offered:
            is_typed = machine_text == text or verb.casefold() == word.casefold()
            if is_typed and view in rights.PAGES and scope.may(action):
                yield Match(f"{word} {machine}", address_in(scope, view, machine), icon)


def _people(scope: Scope, text: str) -> Iterator[Match]:
    if not text or text.startswith("arn:"):
        return
    members = Membership.objects.filter(project=scope.project, user__username__icontains=text)
    roles = dict(members.order_by("user__username").values_list("user__username", "role")[:MOST])
    for name in _best(roles, text):
        yield Match(name, address_in(scope, "executions", by=name), "user", roles[name])


@dataclass(frozen=True, slots=True)
class Destination:
    """A page or an action. ``view``: its URL name; ``icon``: of Lucide.

    ``action``: the right that it takes (an action of ``console.access``). ``keywords``: further
    search words. ``query``: the query string of its URL. ``feature``: a feature that must be
    enabled, in addition to the feature of the URL.
    """

    title: str
    view: str
    icon: str
    keywords: str = ""
    action: str = "ViewPages"
    query: tuple[tuple[str, str], ...] = ()
    feature: str = ""


PAGES = (
    Destination("Overview", "overview", "house", "home start failures"),
    Destination("State machines", "machines", "workflow", "workflows"),
    Destination("Executions", "executions", "list", "runs"),
    Destination(
        *("Paused executions", "executions", "pause", "resume"),
        query=(("paused", "yes"),),
        feature="pause",
    ),
    Destination("Breakpoints", "halted-lines", "circle-dot", "stopped debug waiting lines"),
    Destination("Alarms", "alarms", "bell-ring", "failure rate stuck duration"),
    Destination("Failures by kind", "failures", "layers", "errors groups"),
    Destination("Tasks", "tasks", "clipboard-check", "callbacks approvals tokens"),
    Destination("Activities", "activities", "activity", "workers"),
    Destination("Targets", "targets", "target", "functions services connections"),
    Destination("Metrics", "charts", "chart-column", "charts cost"),
    Destination("Notifications", "notifications", "bell", "rules webhooks mail"),
    Destination("Schedules", "schedules", "calendar-clock", "cron rate"),
    Destination("Bulk actions", "bulk", "list-checks", "jobs"),
    Destination("Projects", "projects", "layers", "teams accounts switch"),
    Destination("Operations", "operations", "server", "health availability workers uptime ready"),
    Destination("Members", "members", "users", "team people invitations"),
    Destination("Connect", "connect", "plug", "endpoint cli boto3 sdk shell credentials"),
    Destination("Access keys", "keys", "key-round", "credentials secret"),
    Destination("Project settings", "project-settings", "settings", "masked paths"),
    Destination("Audit", "audit", "scroll-text", "trail changes who"),
    Destination("Password", "password", "lock", "account"),
)
ACTIONS = (
    Destination("Create state machine", "new", "plus", "workflow editor", "CreateStateMachine"),
    Destination("Import an execution", "import", "upload", "history aws", "ImportExecution"),
    Destination("Compare two executions", "compare", "git-compare", "differences"),
    Destination("Pause all schedules", "schedules-pause", "pause", "stop", "PauseSchedules"),
    Destination("Resume all schedules", "schedules-resume", "play", "", "ResumeSchedules"),
    Destination("Invite a person", "invite", "user-plus", "member team", "CreateInvitation"),
)
