"""List state machines with their recent results, and find changed rows of execution lists.

Pages begin after a key, not at an offset, so nothing repeats or is skipped during new starts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from django.db import connection
from django.db.models import Case, Count, F, OuterRef, Q, Subquery, Value, When, Window

from console.db import clock
from console.db.prepared import read_models, read_rows
from console.masking import masked_execution
from console.models import Execution, StateMachine, Tag
from console.samples import samples_condition
from console.statuses import ExecutionStatus, MachineStatus
from console.web.core.formatting import DAY, EXECUTION
from console.web.execution import waiting
from console.web.execution.note_stamp import note_stamp
from console.web.search.scan import BARE, PAGE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from django.db.models import QuerySet

    from console.web.core.scope import Scope


_OFFERED = 200
RECENT = 20
"""The number of latest executions in the success rate of a state machine."""
FAILURES: tuple[str, ...] = (ExecutionStatus.FAILED, ExecutionStatus.TIMED_OUT)
_JUDGED = (ExecutionStatus.SUCCEEDED, *FAILURES)
_OWN_TAGS = "stateyard:"
"""Prefix of the tags that are options of this server."""
_BARE_BUT_ERROR = ("input", "output", "cause", "definition")


@dataclass(frozen=True, slots=True)
class MachineRow:
    """A row of the list of state machines. ``last``: its latest execution's status.

    ``recent``: the statuses of its newest executions, oldest first; ``tags``: each as
    ``key=value``, but for options of this server; both where the list asked for them.
    """

    machine: StateMachine
    running: int
    failed: int
    last: str | None
    last_ms: int | None
    recent: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()

    @property
    def judged(self) -> list[str]:
        """Return the recent executions that count: neither running nor aborted."""
        return [status for status in self.recent if status in _JUDGED]

    @property
    def success_percent(self) -> int | None:
        """Return the percentage of successes, None without any ended execution.

        It is 100 only if all succeeded, and 0 only if none did.
        """
        judged = self.judged
        succeeded = judged.count(ExecutionStatus.SUCCEEDED)
        if succeeded in (0, len(judged)):
            return 100 * succeeded // len(judged) if judged else None
        return min(max(round(100 * succeeded / len(judged)), 1), 99)

    @property
    def success_words(self) -> str:
        """Return a text with the base of the percentage and the excluded executions."""
        if not self.judged:
            return "No recent execution has succeeded, failed or timed out"
        words = f"of the last {len(self.judged)} succeeded, failed or timed-out executions"
        left_out = len(self.recent) - len(self.judged)
        return f"{words}; {left_out} running or aborted not counted" if left_out else words

    @property
    def bars(self) -> list[tuple[int, str]]:
        """Return x and tone of a bar per recent execution, in a picture of width 100."""
        first = RECENT - len(self.recent)
        return [(5 * (first + at), EXECUTION[status].tone) for at, status in enumerate(self.recent)]


@dataclass(frozen=True, slots=True)
class MachinePage:
    """A page of state machines; ``after``: key of the next one, "" at the end."""

    rows: tuple[MachineRow, ...]
    total: int
    after: str


_OWN_SAMPLES = samples_condition("role_arn")
SORTS: dict[str, tuple[Any, ...]] = {
    "name": ("name",),
    "-name": ("-name",),
    "started": (F("last_ms").asc(nulls_last=True), "name"),
    "-started": (F("last_ms").desc(nulls_last=True), "name"),
    "created": ("created_ms", "name"),
    "-created": ("-created_ms", "name"),
}
"""The value of ``sort`` for a list of state machines -> its order."""


def list_machines(
    scope: Scope,
    *,
    search: str = "",
    after: str = "",
    most: int = PAGE,
    sort: str = "name",
    samples: bool | None = None,
    recent: bool = False,
    tag: str = "",
) -> MachinePage:
    """Return state machines in an order of ``SORTS``.

    ``search``: a part of the name. ``tag``: a tag that they have, as ``key=value``. ``after``:
    where the page begins: a name, and in any other order how many come before. ``samples``: only
    them, or none of them. ``recent``: with the statuses of the newest executions, and the tags.
    """

    def find(project: int, region: str) -> QuerySet[StateMachine]:
        matching = _matching_machines(project, region, search, tag)
        if samples is not None:
            matching = matching.filter(_OWN_SAMPLES if samples else ~_OWN_SAMPLES)
        return matching

    def build(project: int, region: str) -> QuerySet[Any]:
        matching = find(project, region)
        rows: QuerySet[Any] = (
            _with_newest(matching.filter(name__gt=after) if sort == "name" else matching)
            .annotate(total=Window(Count("*")))
            .order_by(*SORTS[sort])[skipped : skipped + most + 1]
        )
        return rows

    skipped = int(after) if sort != "name" and re.fullmatch(r"\d{1,9}", after) else 0
    asked = scope.project.pk, scope.region
    key = ("machines", sort, samples, most)
    searched = search or tag or after  # typed filters are not worth a cached SQL text
    rows = list(build(*asked)) if searched else read_models(key, build, *asked)
    shown = _machine_rows(rows[:most], recent=recent)
    if rows and (not after or sort != "name"):
        total = rows[0].total
    else:
        total = find(*asked).count() if after else 0
    next_key = shown[-1].machine.name if shown and sort == "name" else str(skipped + most)
    return MachinePage(shown, total, next_key if len(rows) > most else "")


def list_beside_samples(
    scope: Scope, *, search: str = "", sort: str = "name", tag: str = ""
) -> tuple[MachinePage, MachinePage]:
    """Return the first page of state machines without samples, and of samples.

    Arguments as in ``list_machines``; samples are sorted by name. Both take the queries of a single
    list, unless there are more state machines than fit on a page.
    """

    def build(project: int, region: str) -> QuerySet[Any]:
        is_sample = Case(When(_OWN_SAMPLES, then=Value(1)), default=Value(0))
        name_of_sample = Case(When(_OWN_SAMPLES, then=F("name")))
        rows: QuerySet[Any] = (
            _with_newest(_matching_machines(project, region, search, tag))
            .annotate(is_sample=is_sample, total=Window(Count("*"), partition_by=is_sample))
            .order_by("is_sample", name_of_sample, *SORTS[sort])[: 2 * PAGE + 1]
        )
        return rows

    asked = scope.project.pk, scope.region
    searched = search or tag  # typed filters are not worth a cached SQL text
    rows = list(build(*asked)) if searched else read_models(("beside samples", sort), build, *asked)
    own = [row for row in rows if not row.is_sample]
    if len(own) > PAGE:
        lists = (False, sort), (True, "name")
        pages = [
            list_machines(scope, search=search, sort=order, samples=samples, recent=True, tag=tag)
            for samples, order in lists
        ]
        return pages[0], pages[1]
    sample_rows = rows[len(own) :][:PAGE]
    shown = _machine_rows([*own, *sample_rows], recent=True)
    return (
        MachinePage(shown[: len(own)], len(own), ""),
        MachinePage(shown[len(own) :], sample_rows[0].total if sample_rows else 0, ""),
    )


def _matching_machines(
    project: int, region: str, search: str = "", tag: str = ""
) -> QuerySet[StateMachine]:
    every = StateMachine.objects.filter(project_id=project, region=region)
    matching = every.filter(name__icontains=search) if search else every
    return matching.filter(arn__in=_tagged_arns(tag)) if tag else matching


def _with_newest(machines: QuerySet[StateMachine]) -> QuerySet[Any]:
    """Return the query with status and start of each state machine's latest execution."""
    newest = Execution.objects.filter(state_machine=OuterRef("pk")).order_by("-start_ms", "-id")
    return machines.defer("definition", "logging", "tracing", "encryption").annotate(
        last=Subquery(newest.values("status")[:1]), last_ms=Subquery(newest.values("start_ms")[:1])
    )


def _tagged_arns(tag: str) -> QuerySet[Tag, str]:
    """Return the ARNs with a tag ``key=value``; the key may contain equals signs."""
    splits = [sign.start() for sign in re.finditer("=", tag)]
    either = Q(pk__in=())
    for at in splits:
        either |= Q(key=tag[:at], value=tag[at + 1 :])
    return Tag.objects.filter(either).values_list("arn", flat=True)


def _tags_of(rows: Sequence[Any]) -> dict[str, list[str]]:
    """Return ARN -> tags, without the tags that are options of this server."""
    tags: dict[str, list[str]] = {}
    stored = read_rows("tags", _read_tags, tuple(row.arn for row in rows))
    for arn, key, value in stored:
        if not key.startswith(_OWN_TAGS):
            tags.setdefault(arn, []).append(f"{key}={value}")
    return tags


def _read_tags(arns: Sequence[str]) -> QuerySet[Tag, tuple[str, str, str]]:
    return Tag.objects.filter(arn__in=arns).order_by("key").values_list("arn", "key", "value")


def _machine_rows(rows: Sequence[Any], *, recent: bool) -> tuple[MachineRow, ...]:
    if not rows:
        return ()
    running, failed = _running_and_failed([row.pk for row in rows])
    tags = _tags_of(rows) if recent else {}
    newest = newest_rows([row.pk for row in rows], ("status",), RECENT) if recent else {}
    return tuple(
        MachineRow(
            row,
            running.get(row.pk, 0),
            failed.get(row.pk, 0),
            row.last,
            row.last_ms,
            tuple(status for _, status in reversed(newest.get(row.pk, ()))),
            tuple(tags.get(row.arn, ())),
        )
        for row in rows
    )


def machine_names(scope: Scope) -> list[str]:
    """Return state machine names for suggestions, newest first."""
    rows = StateMachine.objects.filter(
        project=scope.project, region=scope.region, status=MachineStatus.ACTIVE
    )
    return list(rows.order_by("-pk").values_list("name", flat=True)[:_OFFERED])


def _running_and_failed(machines: Sequence[int]) -> tuple[dict[int, int], dict[int, int]]:
    """Return id -> number of running executions, and of failed ones started in 24 hours."""
    counts: tuple[dict[int, int], dict[int, int]] = ({}, {})
    since = clock.now_ms() - DAY
    rows = read_rows("running and failed", _count_running_and_failed, tuple(machines), since)
    for part, machine, count in rows:
        counts[part][machine] = count
    return counts


def _count_running_and_failed(
    machines: Sequence[int], since: int
) -> QuerySet[Execution, tuple[int, int, int]]:
    chosen = (Q(status=ExecutionStatus.RUNNING), Q(status__in=FAILURES, start_ms__gte=since))
    # one query, but two selections: each reads its own part of an index
    running, failed = (
        Execution.objects.filter(which, state_machine__in=machines)
        .order_by()
        .annotate(part=Value(part))
        .values_list("part", "state_machine")
        .annotate(Count("id"))
        for part, which in enumerate(chosen)
    )
    return running.union(failed, all=True)


def changed_executions(
    scope: Scope, running: Sequence[int], stamps: Mapping[int, str]
) -> list[Execution]:
    """Return the outdated rows of a list.

    ``running``: numbers of the executions that did when the page was rendered; ``stamps``: number
    -> its ``note_stamp``.
    """
    numbers = [*running[:PAGE], *list(stamps)[:PAGE]]
    rows = Execution.objects.filter(project=scope.project, pk__in=numbers)
    executions = rows.select_related("note", "pause", "halted", "state_machine").defer(*BARE)
    ended = set(running)
    return [
        execution
        for execution in executions
        if (execution.pk in ended and execution.status != ExecutionStatus.RUNNING)
        or (execution.pk in stamps and note_stamp(execution) != stamps[execution.pk])
    ]


def latest_executions(scope: Scope, statuses: Sequence[str], most: int) -> list[Execution]:
    """Return the latest executions with one of these statuses."""

    def build() -> QuerySet[Execution]:
        unread = ("definition",) if is_masked else _BARE_BUT_ERROR
        rows = _rows_of(scope, None).filter(status__in=statuses).defer(*unread)
        return rows.order_by("-start_ms", "-pk")[:most]

    project = scope.project
    is_masked = bool(project.masked)
    place = project.pk, project.account_id, scope.region
    key = ("latest executions", *place, tuple(statuses), most, is_masked)
    return masked_execution.mask_list(project, read_models(key, build))


OPEN_TASKS, HALTED = "open tasks", "at breakpoints"


def status_counts(scope: Scope) -> dict[str, int]:
    """Return the number of running executions, and outcomes of the last 24 hours.

    The key ``OPEN_TASKS`` has the number of open tasks, as ``/tasks/`` lists them; ``HALTED`` that
    of the executions at breakpoints.
    """

    def count(since: int) -> QuerySet[Any, tuple[str, int]]:
        rows = (
            _rows_of(scope, None)
            .filter(Q(status=ExecutionStatus.RUNNING) | Q(start_ms__gte=since))
            .order_by()
            .values_list("status")
            .annotate(Count("id"))
        )
        halted = _rows_of(scope, None).filter(halted__isnull=False).order_by()
        counted = halted.annotate(key=Value(HALTED)).values_list("key").annotate(Count("id"))
        return rows.union(waiting.open_task_count(scope, OPEN_TASKS), counted, all=True)

    project = scope.project
    key = ("status counts", project.pk, project.account_id, scope.region)
    return dict(read_rows(key, count, clock.now_ms() - DAY))


def _rows_of(scope: Scope, machine: StateMachine | None) -> QuerySet[Execution]:
    # children of Map Runs belong to their run, as in the service's own lists
    rows = Execution.objects.filter(project=scope.project, map_run=None)
    if machine is not None:
        return rows.filter(state_machine=machine)
    return rows.filter(scope.own_executions)


def newest_rows(
    machines: Sequence[int], fields: Sequence[str], most: int
) -> dict[int, list[tuple[Any, ...]]]:
    """Return state machine id -> start and ``fields`` of its latest executions.

    Children of Map Runs are left out. An index gives each machine's own part of the query, so the
    cost grows with ``most`` and the number of machines, and not with the executions there are.
    """
    newest: dict[int, list[tuple[Any, ...]]] = {}
    if not machines:
        return newest
    sql = _sql_of_newest(connection.vendor, tuple(fields), most)
    parts = (
        f"SELECT {int(machine)}, part{place}.* FROM ({sql}) AS part{place}"
        for place, machine in enumerate(machines)
    )
    with connection.cursor() as cursor:
        cursor.execute(" UNION ALL ".join(parts), machines)
        for machine, *row in cursor.fetchall():
            newest.setdefault(machine, []).append(tuple(row))
    return {
        machine: [(row[0], *row[2:]) for row in sorted(rows, key=lambda row: row[:2], reverse=True)]
        for machine, rows in newest.items()
    }


@lru_cache(maxsize=32)
def _sql_of_newest(_vendor: str, fields: Sequence[str], most: int) -> str:
    """Return the SQL for a state machine, whose id is the only parameter."""
    rows = Execution.objects.filter(state_machine=1, map_run=None)
    rows = rows.order_by("-start_ms", "-id")
    sql, (_machine,) = rows.values_list("start_ms", "id", *fields)[:most].query.sql_with_params()
    return str(sql)
