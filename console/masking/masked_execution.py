"""The payloads of an execution for one reader, with hidden values masked.

``Project.masked`` has the masked paths; ``Mask`` masks a text. This module collects the values at
those paths in an execution and in its ancestors (the Map Run's execution, the Task that started a
child), because a value is masked in all of them. ``mask_execution`` prepares an execution for a
page; ``masked_execution`` returns the masks of its events.
"""

from __future__ import annotations

from collections import OrderedDict
from functools import lru_cache
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

from django.conf import settings
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Coalesce

import engine
from console.masking.mask import OPEN, Mask
from console.models import Execution, HistoryEvent

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from console.models import Project

KEPT = 200_000
"""The number of hidden values that are remembered.

An execution counts as one even if it has none.
"""
MASKED_VALUES = 40_000
"""The number of hidden values in all remembered masks, counted as above."""
HIDDEN_ELSEWHERE = (
    "The input has values that the project masks at another path. Mask this path, too, or reveal "
    "the values of the execution."
)
"""The refusal of an execution by ``shows_hidden``."""
HIDDEN_TOKEN = "(task token)"
_TOKEN_LENGTH = len(engine.task_token(b"", "", 0))
_FIELDS = ("input", "output", "error", "cause")
_ALL: QuerySet[Execution] = QuerySet(Execution)  # imported ones, too
_END = 1 << 60  # behind every event


class MaskedExecution:
    """The masks of one execution for one reader."""

    def __init__(self, execution: Execution, until_ms: int | None = None) -> None:
        """``until_ms``: end of the reader's permission to see everything; None: no permission."""
        self.execution = execution
        self.until_ms = until_ms
        self._mask = OPEN if self.revealed else None
        self._upto = _END if self.revealed else -1

    @property
    def revealed(self) -> bool:
        """Whether the reader sees all values."""
        return self.until_ms is not None

    @property
    def mask(self) -> Mask:
        """Return the mask of the texts, as far as the history was read."""
        if self._mask is None:
            self._read()
        return self._mask or OPEN

    @property
    def hides(self) -> bool:
        """Whether any value of this execution is hidden."""
        return bool(self.mask.values)

    def put(self, mask: Mask, upto: int) -> None:
        """Set a mask made in a batch. ``upto``: the last event it covers, 0: all."""
        self._mask, self._upto = mask, upto or _END

    def event(self, number: int, text: str) -> str:
        """Return the masked details of an event from the database."""
        text, mask = hide_tokens(text, self.execution.arn, number), self._after(number)
        return text if mask is OPEN else mask.details(text)

    def of_task(self, number: int, text: str) -> str:
        """Return the masked input of a task."""
        return self._after(number).payload(hide_tokens(text, self.execution.arn, number))

    def function_output(self, task: int, text: str, last: int) -> str:
        """Return the masked output of a task's function.

        A line of JSON is masked as a payload is, so a place that the project hides counts there.
        ``last``: the event with the task's outcome, whose hidden values the function has known.
        """
        mask = self._after(last)
        lines = hide_tokens(text, self.execution.arn, task).splitlines(keepends=True)
        masked_lines = [
            mask.payload(each) if each.lstrip()[:1] in ("{", "[") else each for each in lines
        ]
        return mask.words("".join(masked_lines))

    def variables(self, variables: Mapping[str, str]) -> dict[str, str]:
        """Return the masked variables that another execution passed on."""
        return {name: self.mask.payload(text) for name, text in variables.items()}

    def _after(self, number: int) -> Mask:
        """Return a mask that covers event ``number``; read newer history if needed."""
        if number > self._upto:
            self._read()
        return self.mask

    def _read(self) -> None:
        project = self.execution.project
        if not project.masked:
            self._mask, self._upto = OPEN, _END
            return
        reads = _known_values(project.masked, _family([self.execution.pk]))
        own = reads.get(self.execution.pk)
        self.put(_joined(places_of(project.masked), reads.values()), own.upto if own else 0)


def hide_tokens(text: str, execution_arn: str, task: int) -> str:
    """Return the payload of a ...Scheduled event without its task token."""
    if len(text) < _TOKEN_LENGTH:  # most events of a Map: no token is computed for them
        return text
    token = engine.task_token(settings.STATEYARD_TOKEN_KEY, execution_arn, task)
    return text.replace(token, HIDDEN_TOKEN)


def masked_execution(execution: Execution) -> MaskedExecution:
    """Return the prepared masks of an execution, else masks for a reader without rights."""
    masked_view = execution.__dict__.get("masked_view")
    if not isinstance(masked_view, MaskedExecution):
        masked_view = execution.__dict__["masked_view"] = MaskedExecution(execution)
    return masked_view


def masked_executions(
    project: Project, executions: Collection[Execution]
) -> dict[int, MaskedExecution]:
    """Return execution id -> masks, for executions of one project, in few queries."""
    masked_by_number = {}
    family = _family([execution.pk for execution in executions]) if project.masked else {}
    reads = _known_values(project.masked, family)
    for execution in executions:
        execution.project = project
        masked_by_number[execution.pk] = masked_execution(execution)
        if execution.pk in reads:  # otherwise it was deleted just now
            line = _line(execution.pk, family, reads)
            masked_by_number[execution.pk].put(
                _joined(places_of(project.masked), line), reads[execution.pk].upto
            )
    return masked_by_number


def mask_execution(execution: Execution, *, until_ms: int | None = None) -> Execution:
    """Mask the texts of an execution for a page; the instance must not be saved."""
    masked_view = execution.__dict__["masked_view"] = MaskedExecution(execution, until_ms)
    if not masked_view.revealed and execution.project.masked:
        mask_columns(execution, masked_view.mask)
        if hasattr(execution, "note"):  # people quote what they see
            execution.note.text = masked_view.mask.words(execution.note.text)
    return execution


def unmask_execution(execution: Execution) -> Execution:
    """Return an execution with its stored texts, to start others from; never shown."""
    unmasked = _ALL.select_related("definition", "project").get(pk=execution.pk)
    unmasked.__dict__["masked_view"] = MaskedExecution(unmasked, _END)
    return unmasked


def mask_list(project: Project, executions: list[Execution]) -> list[Execution]:
    """Mask the texts of listed executions in one query.

    They were read with all their columns, and none is a child of a Map Run.
    """
    failed = [execution for execution in executions if execution.error] if project.masked else []
    if failed:
        places = places_of(project.masked)
        texts = [
            (execution.pk, *(getattr(execution, name) for name in _FIELDS)) for execution in failed
        ]
        values = _values(places, texts, dict.fromkeys([execution.pk for execution in failed]))
        for execution in failed:
            mask_columns(execution, Mask(places, frozenset(values[execution.pk])))
    return executions


def mask_columns(execution: Execution, mask: Mask) -> None:
    """Mask the texts of an execution in its loaded columns."""
    unread = execution.get_deferred_fields()
    for name in _FIELDS:
        text = None if name in unread else getattr(execution, name)
        if text is not None:
            setattr(execution, name, mask.words(text) if name == "error" else mask.payload(text))


@lru_cache(maxsize=64)
def places_of(masked: str) -> engine.PathSet:
    """Parse a project's masked paths. ``masked``: one path a line, checked when saved."""
    return engine.compile_path_set(masked.splitlines())


def masks_of(project: Project, numbers: Collection[int]) -> dict[int, Mask]:
    """Return execution id -> mask of its texts."""
    if not project.masked:
        return dict.fromkeys(numbers, OPEN)
    places = places_of(project.masked)
    family = _family(numbers)
    reads = _known_values(project.masked, family)
    return {number: _joined(places, _line(number, family, reads)) for number in numbers}


def shows_hidden(execution: Execution, text: str, variables: str = "") -> bool:
    """Whether an execution started with an input would show hidden values of another one.

    ``execution``: the other one, as its reader sees it. ``variables``: a JSON object, or "". False
    for a reader who may see all its values.
    """
    project = execution.project
    if not project.masked or masked_execution(execution).revealed:
        return False
    mask = masks_of(project, [execution.pk])[execution.pk]
    hidden: set[str] = set()
    Mask(mask.places).payload(text, hidden)
    own = Mask(mask.places, frozenset(hidden))
    values = engine.loads(variables or "{}")
    texts = [text, *(engine.dumps(value) for value in values.values())]
    return any(mask.payload(each) != own.payload(each) for each in texts)


# -- what was hidden ------------------------------------------------------------------------------


class _State(NamedTuple):
    """Progress of an execution, and its parent: by a Map Run or a starting Task."""

    status: str
    next_event: int | None
    parent: int | None


class _Read(NamedTuple):
    """The hidden values of an execution, read when its progress was ``state``."""

    state: _State
    upto: int
    values: frozenset[str]


class _Memory:
    """Cache of hidden values by execution and masked paths."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._known_values: OrderedDict[tuple[int, str], _Read] = OrderedDict()
        self._size = 0

    def of(self, masked: str, numbers: Iterable[int]) -> dict[int, _Read | None]:
        """Return execution id -> cached read, None if there is none."""
        with self._lock:
            return {pk: self._known_values.get((pk, masked)) for pk in numbers}

    def keep(self, masked: str, number: int, read: _Read) -> None:
        """Cache a read; drop the oldest one."""
        with self._lock:
            before = self._known_values.pop((number, masked), None)
            self._known_values[number, masked] = read
            self._size += _weight(read) - _weight(before)
            while self._size > KEPT and len(self._known_values) > 1:
                self._size -= _weight(self._known_values.popitem(last=False)[1])

    def clear(self) -> None:
        """Empty the cache."""
        with self._lock:
            self._known_values.clear()
            self._size = 0


def _weight(read: _Read | None) -> int:
    return 0 if read is None else 1 + len(read.values)


_memory = _Memory()


def _joined(places: engine.PathSet, reads: Iterable[_Read]) -> Mask:
    values = [read.values for read in reads if read.values]
    return _get_mask(places, values[0] if len(values) == 1 else frozenset().union(*values))


class _Masks:
    """Cache of masks, because a mask of thousands of values is slow to build.

    Bounded by the number of values, because a running execution with growing values needs a new
    mask at each view.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._made: OrderedDict[tuple[engine.PathSet, frozenset[str]], Mask] = OrderedDict()
        self._size = 0

    def of(self, places: engine.PathSet, values: frozenset[str]) -> Mask:
        """Return the mask of these values; drop the least recently used masks."""
        key = (places, values)
        with self._lock:
            if key not in self._made:
                self._made[key] = Mask(places, values)
                self._size += 1 + len(values)
            self._made.move_to_end(key)
            while self._size > MASKED_VALUES and len(self._made) > 1:
                self._size -= 1 + len(self._made.popitem(last=False)[0][1])
            return self._made[key]


_MASKS = _Masks()
_get_mask = _MASKS.of


def _line(number: int, family: dict[int, _State], reads: dict[int, _Read]) -> Iterable[_Read]:
    """Yield the reads of an execution and of its ancestors."""
    current: int | None = number
    while current in family:
        yield reads[current]
        current = family[current].parent


def _family(numbers: Collection[int]) -> dict[int, _State]:
    """Return the states of executions and of all their ancestors."""
    family: dict[int, _State] = {}
    unread = set(numbers)
    while unread:
        rows = _ALL.filter(pk__in=unread)
        states = rows.values_list("pk", "status", F("runrow__next_event"), _above())
        family |= {pk: _State(*state) for pk, *state in states}
        unread = {state.parent for state in family.values() if state.parent is not None} - set(
            family
        )
    return family


def _above() -> Coalesce:
    """Return the parent execution: of the Map Run, or of the starting Task."""
    return Coalesce("map_run__parent_id", "parent")


def _known_values(masked: str, family: dict[int, _State]) -> dict[int, _Read]:
    """Return execution id -> hidden values; changed executions are read now."""
    remembered = _memory.of(masked, family)
    reads = {
        pk: read for pk, read in remembered.items() if read is not None and read.state == family[pk]
    }
    stale = {pk: read for pk, read in remembered.items() if pk not in reads}
    texts = _ALL.filter(pk__in=list(stale)).values_list("pk", *_FIELDS)
    for pk, values in _values(places_of(masked), texts, stale).items():
        upto = (family[pk].next_event or 1) - 1
        reads[pk] = read = _Read(family[pk], upto, frozenset(values))
        _memory.keep(masked, pk, read)
    return reads


def _values(
    places: engine.PathSet,
    texts: Iterable[tuple[int, *tuple[str | None, ...]]],
    stale: dict[int, _Read | None],
) -> dict[int, set[str]]:
    """Read the values at hidden places: only the new events if the history was read before.

    ``texts``: execution's number, input, output, error, cause.
    """
    if not stale:
        return {}
    values = {pk: set(read.values if read else ()) for pk, read in stale.items()}
    mask = Mask(places)
    for pk, *fields in texts:
        for text in fields:
            mask.payload(text or "", values[pk])
    after = min(read.upto if read else 0 for read in stale.values())
    rows = HistoryEvent.objects.filter(_may_hold(places), execution_id__in=list(stale))
    rows = rows.filter(event_id__gt=after) if after else rows
    for pk, text in rows.values_list("execution_id", "details").iterator(chunk_size=500):
        mask.details(text, values[pk])
    return values


def _may_hold(places: engine.PathSet) -> Q:
    """Return a query condition that excludes events without hidden places."""
    condition = Q(details__contains="\\u")
    for names in places.names:
        plain = [name for name in names if name.isidentifier()]
        with_all = Q(details__gt="")
        for name in plain:
            with_all &= Q(details__contains=name)
        condition |= with_all
    return condition
