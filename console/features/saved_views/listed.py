"""List a project's saved views, and find the displayed one.

A saved view is a query string: ``?view=name`` redirects to it with the name appended, so that the
URL shows the same list without the name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlencode

from django.http import Http404, QueryDict

from console.db.prepared import read_models, read_rows
from console.models import SavedView, StateMachine
from console.web.search import scan
from console.web.search.filters import FIELDS, ExecutionFilters

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.db.models import QuerySet
    from django.http import HttpRequest

    from console.web.core.scope import Scope


@dataclass(frozen=True, slots=True)
class OfferedView:
    """A saved view in the list. ``count``: "12", "99+", "" if it needs a search."""

    view: SavedView
    address: str
    count: str
    current: bool

    @property
    def machine(self) -> str:
        """Return the only state machine it filters for, "" for any."""
        return machine_of(self.view)


@dataclass(frozen=True, slots=True)
class SavedViewList:
    """The saved views. ``named``: the view in the URL; ``query``: the filters that *Save* stores.

    ``changed``: the list differs from the saved view. ``default``: this state machine's page opens
    with a saved view.
    """

    views: tuple[OfferedView, ...]
    named: OfferedView | None
    query: str
    changed: bool
    default: bool


def default_view(scope: Scope, request: HttpRequest, machine: StateMachine | None) -> str:
    """Return the redirect for ``?view=name`` or a default view; "" for none."""
    query = request.GET
    if any(query.get(name) for name in (*FIELDS, "before", "sort")):
        return ""
    views = SavedView.objects.filter(project=scope.project)
    name = query.get("view", "")
    if not name and (machine is None or "view" in query):
        return ""
    if not name and machine is not None:
        asked = scope.project.pk, machine.name
        if not read_rows("default views", _read_default_views, *asked):
            return ""  # the usual case, at each view of a state machine
    view = views.filter(**({"name": name} if name else {"default_of": machine and machine.name}))
    saved = view.first()
    if saved is None and name:
        raise Http404(f"There is no view “{name[:80]}”. It may have been deleted or renamed.")
    if saved is None or not (pairs := _address_pairs(saved, machine)):
        return ""
    region = [("region", scope.region)] if scope.elsewhere else []
    return f"{request.path}?{urlencode([*pairs, ('view', saved.name), *region])}"


def _read_default_views(project: int, machine: str) -> QuerySet[SavedView, tuple[int]]:
    return SavedView.objects.filter(project=project, default_of=machine).values_list("pk")


def list_context(
    scope: Scope,
    machine: StateMachine | None,
    filters: ExecutionFilters,
    query: Mapping[str, str],
) -> dict[str, Any]:
    """Return the saved views for the page of a list; ``opens_view``: a view is its default."""
    saved = saved_view_list(scope, machine, filters, query.get("view", ""))
    return {"saved": saved, "opens_view": saved.default}


def saved_view_list(
    scope: Scope, machine: StateMachine | None, filters: ExecutionFilters, name: str
) -> SavedViewList:
    """Return the saved views of a list, counted in a fixed number of queries."""
    every = read_models("saved views", _read_saved_views, scope.project.pk)
    views = [view for view in every if machine is None or machine_of(view) in ("", machine.name)]
    counted = _count_texts(scope, machine, views)
    offered = tuple(
        OfferedView(view, _view_address(view, machine), count, view.name == name)
        for view, count in zip(views, counted, strict=True)
    )
    named = next((view for view in offered if view.current), None)
    general = named is not None and not named.machine
    query = _saved_query(None if general else machine, filters)
    changed = named is not None and sorted(parse_qsl(query)) != sorted(parse_qsl(named.view.query))
    default = machine is not None and any(view.default_of == machine.name for view in views)
    return SavedViewList(offered, named, query, changed, default)


def _read_saved_views(project: int) -> QuerySet[SavedView]:
    return SavedView.objects.filter(project=project).order_by("name")


def count_view(scope: Scope, view: SavedView) -> str:
    """Return the count of a saved view that needs a search."""
    filters = scan.check_machine_name(scope, None, ExecutionFilters.of(QueryDict(view.query)))
    if filters.problems:
        return "0"
    part = scan.find_keys(scope, None, filters, None, scan.MOST_COUNTED + 1)
    return _count_text(min(len(part.keys), scan.MOST_COUNTED), more=part.floor is not None)


def machine_of(view: SavedView) -> str:
    """Return the only state machine that a saved view filters for, "" for any."""
    return dict(parse_qsl(view.query)).get("machine", "")


def _count_texts(scope: Scope, machine: StateMachine | None, views: list[SavedView]) -> list[str]:
    names = {machine_of(view) for view in views} - {""}
    machines = {machine.name: machine} if machine else {}
    if names - set(machines):
        arns = [scope.arn("stateMachine", name) for name in names]
        rows = StateMachine.objects.filter(project=scope.project, arn__in=arns)
        machines |= {row.name: row for row in rows.defer("definition")}
    lists = [
        (machine or machines.get(machine_of(view)), ExecutionFilters.of(QueryDict(view.query)))
        for view in views
    ]
    sound = [
        place
        for place, (of, filters) in enumerate(lists)
        if not filters.problems and (of is not None or not filters.machine)
    ]
    counts = scan.count_lists(scope, [lists[place] for place in sound])
    count_of = {place: counts.get(at) for at, place in enumerate(sound)}
    return [
        "0"
        if place not in count_of
        else ""
        if (count := count_of[place]) is None
        else _count_text(*count)
        for place in range(len(views))
    ]


def _count_text(count: int, more: bool) -> str:
    return f"{count}+" if more else str(count)


def _address_pairs(view: SavedView, machine: StateMachine | None) -> list[tuple[str, str]]:
    """Return a saved view as URL parameters; a state machine's own page omits its name."""
    pairs = parse_qsl(view.query)
    return pairs if machine is None else [pair for pair in pairs if pair[0] != "machine"]


def _saved_query(machine: StateMachine | None, filters: ExecutionFilters) -> str:
    """Return the query string to save; on a state machine's page with its name."""
    pairs = [pair for pair in filters.pairs if machine is None or pair[0] != "machine"]
    own = [("machine", machine.name)] if machine else []
    return urlencode([*pairs, *own, *filters.order_pairs])


def _view_address(view: SavedView, machine: StateMachine | None) -> str:
    return urlencode([*_address_pairs(view, machine), ("view", view.name)])
