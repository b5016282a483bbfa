"""Views of the Map Run page: show it, poll it, change its settings."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.db.models import Q
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe

from console.db import clock
from console.errors import ServiceError
from console.features.map_runs import map_run_display
from console.masking import masked_execution
from console.models import Execution
from console.statuses import ExecutionStatus, MapRunStatus
from console.store.executions import redrive
from console.store.map_runs import map_runs as store
from console.web.core import formatting
from console.web.core.scope import actor_of, choose, render, require, scope_of
from console.web.execution import audit_trail, child_counts
from console.web.search.filters import STATUSES
from console.web.search.scan import BARE

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from django.db.models import QuerySet
    from django.http import HttpRequest, QueryDict

    from console.masking.mask import Mask
    from console.models import MapRun
    from console.store.map_runs.map_counts import Counts
    from console.web.core.scope import Scope
    from console.web.execution.audit_trail import AuditedAction


_SURE = 10
"""The number of ended children from which the remaining time is estimated."""
_STUCK = 2
"""The multiple of the usual duration of a child above which no remaining time is estimated."""
_UNITS = ((formatting.SECOND, "second"), (formatting.MINUTE, "minute"), (formatting.HOUR, "hour"))


@require_http_methods(["GET", "POST"])
def map_run_page(
    request: HttpRequest, machine_name: str, execution_name: str, number: int
) -> HttpResponse:
    """Show the Map Run of a task; a POST changes its settings."""
    scope = scope_of(request)
    run = map_run_display.find_map_run(scope, machine_name, execution_name, number)
    if request.method == "GET":
        return _render_page(request, scope, machine_name, run, map_run_display.setting_fields(run))
    require(scope, "UpdateMapRun")
    fields, changes = map_run_display.read_settings(run, map_run_display.SettingsForm(request.POST))
    if any(field.problem for field in fields):
        return _render_page(request, scope, machine_name, run, fields, status=422)
    try:
        if changes:
            store.update_map_run(run, actor_of(scope), **changes)
    except ServiceError as refused:
        messages.error(request, f"{refused.message}.")
    else:
        messages.success(request, "The settings were changed." if changes else "Nothing changed.")
    return redirect(request.get_full_path())


@require_safe
def map_run_changes(
    request: HttpRequest, machine_name: str, execution_name: str, number: int
) -> HttpResponse:
    """Answer a poll: nothing without a change, else counts and children.

    ``ended``: the page shows the Map Run as ended, after this number of redrives.
    """
    scope = scope_of(request)
    run = map_run_display.find_map_run(scope, machine_name, execution_name, number)
    over = run.status != MapRunStatus.RUNNING
    if over and request.GET.get("ended") == str(run.redrive_count):
        return HttpResponse(status=204)
    context = _page_context(request, scope, machine_name, run)
    if "ended" in request.GET and not over:
        context |= {"redriven": True, "fields": map_run_display.setting_fields(run)}
    if request.GET.get("seen") == context["seen"] and not context["over"]:
        return HttpResponse(status=204)
    if request.GET.get("failed") != str(context["failed"]):  # to group them reads their causes
        failed = child_counts.failed_children(run)
        masks = masked_execution.masks_of(scope.project, [row.pk for row in failed])
        failures = child_counts.group_failures(run, failed, masks, MOST_KINDS)
        context |= {"failures": failures, "failures_changed": True}
    return render(request, "map_runs/_live_update.html", context)


def _render_page(
    request: HttpRequest,
    scope: Scope,
    machine_name: str,
    run: MapRun,
    fields: Sequence[map_run_display.Field],
    status: int = 200,
) -> HttpResponse:
    failed = child_counts.failed_children(run)
    context = _page_context(request, scope, machine_name, run, failed)
    masks = context["children"].masks
    failures = child_counts.group_failures(run, failed, masks, MOST_KINDS)
    context |= {"fields": fields, "failures": failures}
    context["wrong"] = any(field.problem for field in fields)
    return render(request, "map_runs/page.html", context, status=status)


def _page_context(
    request: HttpRequest,
    scope: Scope,
    machine_name: str,
    run: MapRun,
    failed: Sequence[Execution] = (),
) -> dict[str, Any]:
    names = [machine_name, run.parent.name]
    bad = run.status in (MapRunStatus.FAILED, MapRunStatus.ABORTED)
    context = {
        "section": "executions",
        "run": run,
        "state": map_run_display.state_name(run),
        "status": formatting.EXECUTION[run.status],
        "execution": run.parent,
        "machine_name": machine_name,
        "base": reverse("execution", args=names),
        "own": reverse("map-run", args=[*names, run.task]),
        "execution_status": formatting.EXECUTION[run.parent.status],
        "children": list_children(scope, run, request.GET, failed),
        "may_update": scope.may("UpdateMapRun") and run.status == MapRunStatus.RUNNING,
        "redrivable": bad,
        "refusal": map_run_display.redrive_refusal(run) if bad else "",
        "failed": run.failed + run.timed_out,
        "stop_reason": stop_reason(run),
        **map_run_display.count_children(run),
    }
    over, children = context["over"], context["of_children"]
    oldest_ms = oldest_running_ms(run) if children.pending and not over else None
    context["pace"] = pace_facts(run, children, over=over, oldest_ms=oldest_ms)
    return context | {"seen": map_run_display.page_stamp(context)}


@dataclass(frozen=True, slots=True)
class StopReason:
    """Why a Map Run was aborted. ``stop``: its execution's stop, None for another reason."""

    words: str
    stop: AuditedAction | None = None


def stop_reason(run: MapRun) -> StopReason | None:
    """Return why a Map Run was aborted, None if it was not or if unknown."""
    if run.status != MapRunStatus.ABORTED:
        return None
    if run.parent.status == ExecutionStatus.ABORTED:
        return StopReason("Its execution was stopped", audit_trail.audit_trail_of(run.parent).stop)
    if run.parent.status == ExecutionStatus.TIMED_OUT:
        return StopReason("Its execution timed out")
    if run.parent.redrive_count:
        return None
    return StopReason("Stopped by the failure of a parallel state")


@dataclass(frozen=True, slots=True)
class PaceFact:
    """A fact. ``value``: the figure; ``rest``: following words; ``bad``: beyond a limit."""

    word: str
    value: str
    rest: str = ""
    bad: bool = False


def pace_facts(
    run: MapRun, children: Counts, *, over: bool, oldest_ms: int | None = None
) -> list[PaceFact]:
    """Return concurrency, tolerated failures and throughput, in words.

    ``oldest_ms``: when the child that has been running longest began, None if that is not known.
    """
    facts = [_concurrency(run, children, over=over), _tolerance_words(run, children)]
    if not run.redrive_count:  # the time before a redrive is not run time
        facts.append(_throughput(run, children, over=over, oldest_ms=oldest_ms))
    return facts


def _concurrency(run: MapRun, children: Counts, *, over: bool) -> PaceFact:
    limit = f"at most {run.max_concurrency:,}" if run.max_concurrency else "no limit"
    if over:
        return PaceFact("Concurrency", limit)
    return PaceFact("Concurrency", f"{children.running:,} running", f"of {limit}")


def _tolerance_words(run: MapRun, children: Counts) -> PaceFact:
    """Return actual and tolerated failures in words; AWS counts aborted children, too.

    The two stand apart: once the limit is passed, the Map Run aborts the children that run.
    """
    failed = children.failed + children.timed_out
    bad = failed + children.aborted
    count, percentage = run.tolerated_count, run.tolerated_percentage
    word = "Tolerated failures"
    if count is None and percentage is None:
        return PaceFact(word, "none", "the first failure ends the Map Run", bad=bad > 0)
    if percentage is not None and run.reading:  # of a total that is not known
        return PaceFact(word, f"{percentage:g} %", "of the items (still reading)")
    limits, words = [], []
    if count is not None:
        limits.append(count)
        words.append(f"{count:,}")
    if percentage is not None:
        limits.append(int(percentage * run.total / 100))
        words.append(f"{percentage:g} %")
    most = min(limits)
    limit = f"{most:,} tolerated" + (f" ({' or '.join(words)})" if percentage is not None else "")
    kinds = "failed or timed out" if children.timed_out else "failed"
    aborted = f", {children.aborted:,} aborted" if children.aborted else ""
    return PaceFact(word, f"{failed:,}", f"{kinds}{aborted}; {limit}", bad=bad > most)


def _throughput(run: MapRun, children: Counts, *, over: bool, oldest_ms: int | None) -> PaceFact:
    now = run.stop_ms or clock.now_ms()
    took_ms = max(now - run.start_ms, 1)
    if not children.ended:
        return PaceFact("Throughput", "none yet" if not over else "none")
    unit_ms, name = next(
        (unit for unit in _UNITS if children.ended * unit[0] >= took_ms), _UNITS[-1]
    )
    rate = children.ended * unit_ms / took_ms
    rate_text = f"{rate:,.0f}" if rate >= _SURE else f"{rate:.1f}"
    remaining = children.pending + children.running
    rest = f"child execution{'' if rate_text == '1.0' else 's'} a {name}"
    usual_ms = took_ms * max(children.running, 1) // children.ended  # by Little's law
    stuck = oldest_ms is not None and now - oldest_ms > _STUCK * usual_ms
    sure = children.ended >= _SURE and not stuck
    if children.pending and not over and not run.reading and sure:
        left_ms = remaining * took_ms // children.ended
        rest += f", about {formatting.rough_duration(left_ms)} left"
    return PaceFact("Throughput", rate_text, rest)


PAGE = 50
MOST_KINDS = 10
"""The number of kinds of failures on the page; the others are one more."""
_NOT_LISTED = [name for name in BARE if name != "error"]


class ChildOrder(StrEnum):
    """The order of the list."""

    FAILED = "failed"  # failed, timed out, aborted, running, succeeded; by item within each
    ITEM = "item"  # by item


_PARTS: dict[str, ExecutionStatus | None] = {
    "f": ExecutionStatus.FAILED,
    "t": ExecutionStatus.TIMED_OUT,
    "a": ExecutionStatus.ABORTED,
    "r": ExecutionStatus.RUNNING,
    "": None,  # succeeded children
}
"""Letter of the mark -> status, in the order of ``ChildOrder.FAILED``."""


@dataclass(frozen=True, slots=True)
class ChildFilter:
    """The filter of the list. ``status``: as in the URL, "" for all.

    ``kind``: the failure kind of the children. ``others``: children of no listed kind; ``nothing``:
    the requested kind does not exist.
    """

    status: str = ""
    kind: child_counts.FailureKind | None = None
    others: bool = False
    nothing: bool = False

    @property
    def statuses(self) -> Collection[str] | None:
        """Return the statuses of the listed children, None for all."""
        if self.status and self.status != child_counts.FAILURES:
            return (self.status,)
        narrowed = self.status or self.kind or self.others or self.nothing
        return child_counts.FAILED_STATUSES if narrowed else None


def oldest_running_ms(run: MapRun) -> int | None:
    """Return the start of the longest running child, None if none is running.

    This is the child with the lowest index: children begin in this order, except redriven children.
    """
    running = Execution.objects.filter(map_run=run, status=ExecutionStatus.RUNNING)
    return running.order_by("item_index").values_list("start_ms", flat=True).first()


@dataclass(frozen=True, slots=True)
class ChildPage:
    """A page of children. ``after``: the position of the next page.

    ``rows``: (child, its status, its error as it may be read). ``masks``: of children with an
    error, and of the executions in ``beside``. ``first``: number of the first row of ``of``.
    """

    rows: tuple[tuple[Execution, formatting.StatusLabel, str], ...]
    filter: ChildFilter
    order: ChildOrder
    begun: bool
    after: str
    first: int
    of: int
    masks: Mapping[int, Mask]

    @property
    def last(self) -> int:
        """Return the number of the last row."""
        return self.first + len(self.rows) - 1


def list_children(
    scope: Scope, run: MapRun, query: QueryDict, beside: Sequence[Execution] = ()
) -> ChildPage:
    """Return the children for a query: ``status``, ``kind``, ``order``, ``after``.

    ``beside``: other executions to return the masks of, in the same queries.
    """
    children, narrowed = _filter_children(scope, run, query)
    listing = ChildListing(run, children, query, narrowed.statuses)
    rows, before = listing.rows(PAGE + 1), listing.before()
    page_rows = rows[:PAGE]
    waiting = _waiting_among(run, page_rows)
    masked = {row.pk for row in page_rows if row.error} | {row.pk for row in beside}
    masks = masked_execution.masks_of(scope.project, masked) if masked else {}
    return ChildPage(
        tuple(
            (
                execution,
                _child_status(execution, waits=execution.pk in waiting),
                masks[execution.pk].words(execution.error) if execution.error else "",
            )
            for execution in page_rows
        ),
        narrowed,
        listing.order,
        before > 0,
        listing.mark_of(page_rows[-1]) if len(rows) > PAGE else "",
        before + 1,
        run.started if narrowed.statuses is None else children.count(),
        masks,
    )


def _filter_children(
    scope: Scope, run: MapRun, query: QueryDict
) -> tuple[QuerySet[Execution], ChildFilter]:
    """Return the children for a query string, and the filter."""
    children = Execution.objects.filter(map_run=run)
    key = query.get("kind", "")
    if key:
        kinds = child_counts.failure_kinds(scope.project, run)
        if key == child_counts.OTHER_KINDS:
            listed = _items_of(kinds[:MOST_KINDS])
            others = children.filter(status__in=child_counts.FAILED_STATUSES)
            return others.exclude(item_index__in=listed), ChildFilter(others=True)
        kind = next((each for each in kinds if each.key == key), None)
        children = children.filter(item_index__in=_items_of([kind] if kind else []))
        return children, ChildFilter(kind=kind, nothing=kind is None)
    status = choose(query, "status", (child_counts.FAILURES, *STATUSES))
    if status == child_counts.FAILURES:
        return children.filter(status__in=child_counts.FAILED_STATUSES), ChildFilter(status)
    if status in STATUSES:
        return children.filter(status=status), ChildFilter(status)
    return children, ChildFilter()


def _items_of(kinds: Collection[child_counts.FailureKind]) -> list[int | None]:
    return [child.item_index for kind in kinds for child in kind.children]


class ChildListing:
    """Children of a Map Run in an order, from a position.

    A mark is the index of an item, after the letter of the part that is listed. Each part is read
    by the index of children, so that a page of the first failures sorts no Map Run of 10,000.
    ``statuses``: the statuses that the children may have, None for all.
    """

    def __init__(
        self,
        run: MapRun,
        children: QuerySet[Execution],
        query: QueryDict,
        statuses: Collection[str] | None,
    ) -> None:
        self.order = ChildOrder(choose(query, "order", ChildOrder, ChildOrder.FAILED))
        self._run, self._statuses = run, statuses
        self._children = children
        mark = re.fullmatch(r"([ftar]?)(\d{1,9})", query.get("after", ""), re.ASCII)
        self._after = int(mark[2]) if mark else None
        self._part = mark[1] if mark else next(iter(_PARTS))

    def rows(self, most: int) -> list[Execution]:
        """Return the first children after the position."""
        if self.order is ChildOrder.ITEM:
            return self._read(Q(), self._after, most)
        rows: list[Execution] = []
        for letter in list(_PARTS)[list(_PARTS).index(self._part) :]:
            if len(rows) < most and self._may_have(letter):
                after = self._after if letter == self._part else None
                rows += self._read(_of_part(letter), after, most - len(rows))
        return rows

    def before(self) -> int:
        """Return the number of children before the first one; no query on the first page."""
        if self._after is None:
            return 0
        passed = Q(item_index__lte=self._after)
        if self.order is ChildOrder.FAILED:
            passed &= _of_part(self._part)
            for letter in list(_PARTS)[: list(_PARTS).index(self._part)]:
                passed |= _of_part(letter)
        return self._children.filter(passed).count()

    def mark_of(self, child: Execution) -> str:
        """Return the position after the last child of a page."""
        letters = {status: letter for letter, status in _PARTS.items()}
        part = letters.get(ExecutionStatus(child.status), "")
        return f"{part if self.order is ChildOrder.FAILED else ''}{child.item_index}"

    def _may_have(self, letter: str) -> bool:
        """Whether a part may have children; unknown while some wait for a redrive."""
        if self._statuses is not None:
            return (_PARTS[letter] or ExecutionStatus.SUCCEEDED) in self._statuses
        run = self._run
        ends = {"f": run.failed, "t": run.timed_out, "a": run.aborted, "": run.succeeded}
        running = run.started - sum(ends.values())
        return bool(run.pending_redrive or ends.get(letter, running))

    def _read(self, part: Q, after: int | None, most: int) -> list[Execution]:
        children = self._children.filter(part)
        if after is not None:
            children = children.filter(item_index__gt=after)
        return list(children.order_by("item_index").defer(*_NOT_LISTED)[:most])


def _of_part(letter: str) -> Q:
    status = _PARTS[letter]
    statuses = [each for each in _PARTS.values() if each is not None]
    return ~Q(status__in=statuses) if status is None else Q(status=status)


def _waiting_among(run: MapRun, children: Sequence[Execution]) -> set[int]:
    """Return the children that wait for their run's redrive; no query if none does."""
    if not run.pending_redrive:
        return set()
    rows = Execution.objects.filter(redrive.waiting_children(run))
    return set(rows.filter(pk__in=[child.pk for child in children]).values_list("pk", flat=True))


def _child_status(child: Execution, *, waits: bool) -> formatting.StatusLabel:
    return formatting.EXECUTION[ExecutionStatus.PENDING_REDRIVE if waits else child.status]
