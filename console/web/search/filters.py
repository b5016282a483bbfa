"""Read the filters of an execution list from the query string, as one frozen value.

Lists, polls, bulk actions and searches all use it, so that a URL means the same everywhere. An
invalid value has an error message at its field.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias, TypeVar
from urllib.parse import urlencode

from django.db.models import Q

from console.statuses import UNSUCCESSFUL, ExecutionStatus
from console.web.search.moments import parse_moment, parse_span, quoted_text
from console.web.search.payload_columns import PayloadColumn, read_columns
from console.web.search.query import PayloadSearch
from console.web.search.query_parser import parse_search

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from django.db.models import QuerySet
    from django.http import QueryDict

    from console.models import Execution


Key: TypeAlias = tuple[int, int]
"""Start (epoch ms) and number: the place of an execution in every list."""


@dataclass(frozen=True, slots=True)
class KeyOrder:
    """One of the two orders of a list."""

    oldest_first: bool = False

    def sort(self, keys: Iterable[Key]) -> list[Key]:
        """Return keys in this order."""
        return sorted(keys, reverse=not self.oldest_first)

    def nearest(self, keys: Iterable[Key]) -> Key | None:
        """Return the first key in this order, None without any."""
        return min(keys, default=None) if self.oldest_first else max(keys, default=None)

    def keys_of(self, rows: QuerySet[Execution]) -> QuerySet[Execution, Key]:
        """Return the keys of rows in this order."""
        return self.ordered(rows).values_list("start_ms", "pk")

    def ordered(self, rows: QuerySet[Execution]) -> QuerySet[Execution]:
        """Return rows in this order."""
        return rows.order_by(*(("start_ms", "pk") if self.oldest_first else ("-start_ms", "-pk")))

    def after(self, rows: QuerySet[Execution], key: Key | None) -> QuerySet[Execution]:
        """Return the condition for rows after a key; its last part lets the index begin there."""
        if key is None:
            return rows
        if self.oldest_first:
            return rows.filter(Q(start_ms__gt=key[0]) | Q(pk__gt=key[1]), start_ms__gte=key[0])
        return rows.filter(Q(start_ms__lt=key[0]) | Q(pk__lt=key[1]), start_ms__lte=key[0])

    def up_to(self, rows: QuerySet[Execution], key: Key | None) -> QuerySet[Execution]:
        """Return the condition for rows up to and including a key."""
        if key is None:
            return rows
        if self.oldest_first:
            return rows.filter(Q(start_ms__lt=key[0]) | Q(pk__lte=key[1]), start_ms__lte=key[0])
        return rows.filter(Q(start_ms__gt=key[0]) | Q(pk__gte=key[1]), start_ms__gte=key[0])


NEWEST_FIRST = KeyOrder()


T = TypeVar("T")
STATUSES = (
    ExecutionStatus.RUNNING,
    ExecutionStatus.SUCCEEDED,
    ExecutionStatus.FAILED,
    ExecutionStatus.TIMED_OUT,
    ExecutionStatus.ABORTED,
)
BAD_ENDS: tuple[str, ...] = UNSUCCESSFUL
FIELDS = (
    *("find", "status", "q", "machine", "version", "from", "to", "min", "max", "error", "by"),
    *("redriven", "paused", "children", "failure"),
)
"""The names in the query string that narrow a list."""
_LONGEST = 256
ORDERS = {"": NEWEST_FIRST, "oldest": KeyOrder(oldest_first=True)}
"""The value of ``sort`` in an address -> the order of the list."""
_CHOICES = {"redriven": ("yes", "no"), "paused": ("yes",), "children": ("with", "only")}


@dataclass(frozen=True, slots=True)
class ExecutionFilters:
    """The filters of a list of executions.

    Times are epoch milliseconds, spans milliseconds. ``typed``: each field as it was written, for
    the form; ``problems``: why a field was not understood; ``before``: key of the page, "" for the
    first. ``sort``: the name of the order. ``columns``: typed path -> a column from the payloads.
    """

    statuses: tuple[str, ...] = ()
    search: str = ""
    machine: str = ""
    version: str = ""
    since: int | None = None
    until: int | None = None
    shortest: int | None = None
    longest: int | None = None
    error: str = ""
    started_by: str = ""
    redriven: bool | None = None
    paused: bool = False
    children: str = ""
    failure: str = ""
    find: PayloadSearch = field(default_factory=PayloadSearch)
    before: str = ""
    sort: str = ""
    columns: Mapping[str, PayloadColumn] = field(default_factory=dict)
    typed_columns: str = ""
    typed: Mapping[str, str] = field(default_factory=dict)
    problems: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, query: QueryDict) -> ExecutionFilters:
        """Read the query string."""
        typed = {name: query.get(name, "").strip()[:_LONGEST] for name in FIELDS}
        problems: dict[str, str] = {}

        def read(name: str, parse: Callable[[str], T]) -> T | None:
            try:
                return parse(typed[name]) if typed[name] else None
            except ValueError as error:
                problems[name] = str(error)
                return None

        before, sort = query.get("before", ""), query.get("sort", "")
        if sort not in ORDERS:
            problems["sort"] = f"{quoted_text(sort)} is not an order. Use oldest."
        statuses = tuple(status for status in STATUSES if status in query.getlist("status"))
        unknown = {status for status in query.getlist("status") if status} - set(STATUSES)
        if unknown:
            problems["status"] = f"There is no status {quoted_text(min(unknown))}."
        for name, choices in _CHOICES.items():
            if typed[name] and typed[name] not in choices:
                problems[name] = (
                    f"{quoted_text(typed[name])} is unknown. Use {' or '.join(choices)}."
                )
        typed_columns = query.get("columns", "").strip()
        columns, problem = read_columns(typed_columns, outputs=True)
        if problem:
            problems["columns"] = problem
        filters = cls(
            statuses=statuses,
            search=typed["q"],
            machine=typed["machine"],
            version=typed["version"],
            since=read("from", parse_moment),
            until=read("to", parse_moment),
            shortest=read("min", parse_span),
            longest=read("max", parse_span),
            error=typed["error"],
            started_by=typed["by"],
            redriven={"yes": True, "no": False}.get(typed["redriven"]),
            paused=typed["paused"] == "yes",
            children=typed["children"] if typed["children"] in _CHOICES["children"] else "",
            failure=read("failure", _failure) or "",
            find=read("find", parse_search) or PayloadSearch(),
            before=before if re.fullmatch(r"\d{1,15}-\d{1,15}", before) else "",
            sort=sort if sort in ORDERS else "",
            columns=columns,
            typed_columns=typed_columns,
            typed=typed,
            problems=problems,
        )
        problems |= _contradictions(filters)
        return filters

    @property
    def order(self) -> KeyOrder:
        """Return the order of the list."""
        return ORDERS[self.sort]

    @property
    def active(self) -> bool:
        """Whether executions are filtered out (or child executions included)."""
        return bool(self.statuses or any(self.typed.values()))

    @property
    def folded_problem(self) -> bool:
        """Whether a collapsed field of the form has an error."""
        return bool(set(self.problems) - {"find", "status", "q", "failure"})

    @property
    def is_of_indexes(self) -> bool:
        """Whether indexes cover all conditions: state machine, status, pause and start."""
        indexed = {"status", "paused", "machine", "from", "to", "find"}
        fields = {name for name, text in self.typed.items() if text}
        of_start = all(each.field in ("started", "age") for each in self.find.conditions)
        return fields <= indexed and of_start and not self.find.words

    @property
    def address(self) -> str:
        """Return the equivalent query string, without empty fields and page."""
        return urlencode([*self.pairs, *self.order_pairs])

    @property
    def order_pairs(self) -> list[tuple[str, str]]:
        """Return the order and the columns, which exclude no execution, as URL parameters."""
        pairs = (("sort", self.sort), ("columns", self.typed_columns))
        return [(name, value) for name, value in pairs if value]

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """Return the non-empty fields as URL parameters."""
        pairs = [("status", status) for status in self.statuses]
        return pairs + [
            (name, text) for name, text in self.typed.items() if text and name != "status"
        ]


def _failure(text: str) -> str:
    if not re.fullmatch(r"[0-9a-f]{16}", text):
        msg = f"{quoted_text(text)} is not a group of the page Failures."
        raise ValueError(msg)
    return text


def _contradictions(filters: ExecutionFilters) -> dict[str, str]:
    """Return the errors in combinations of fields."""
    problems = {}
    if filters.since is not None and filters.until is not None and filters.since > filters.until:
        problems["to"] = "The end is before the start."
    if (
        filters.shortest is not None
        and filters.longest is not None
        and filters.shortest > filters.longest
    ):
        problems["max"] = "The maximum is shorter than the minimum."
    return problems
