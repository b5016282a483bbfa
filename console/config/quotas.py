"""Quotas of a project: resource limits and request rates.

AWS's numbers unless ``DATA/quotas.json`` or ``STATEYARD_QUOTAS`` says otherwise: an object of the
members of ``Quotas``, and under ``projects`` by name what differs for one. No rate by default.

Owners set quotas of their project on a page, up to a ceiling: the number under ``ceiling``, or
without one the number for every project. A quota under ``projects`` is the operator's alone.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from django.conf import settings

from console.config.environment import SettingError
from console.db.branch_names import parent_name

if TYPE_CHECKING:
    from console.db.project_settings import StoredSetting


@dataclass(frozen=True, slots=True)
class Rate:
    """A token bucket: so many at once, and so many more a second (both above 0)."""

    bucket: float
    refill: float


@dataclass(frozen=True, slots=True)
class Quotas:
    """Most of each thing, and the rates; None: not limited.

    ``open_executions``: how many executions may run at once, without the children of Map Runs; AWS
    has 1,000,000. ``nesting_depth``: how many executions may be above one that a Task starts.
    ``waiting_calls``: how many calls of one access key may wait for their answers in one process;
    ``start_link_waits``: how many callers of one start link may wait there for the end of an
    execution; ``start_link``: the rate of one link there. ``start_execution``,
    ``state_transition``: ``{"bucket": 800, "refill": 400}`` for example.
    """

    state_machines: int = 10_000
    activities: int = 10_000
    activity_pollers: int = 1_000
    open_executions: int | None = 100_000
    nesting_depth: int = 20
    waiting_calls: int = 2_000
    start_link_waits: int = 16
    start_link: Rate | None = Rate(200, 100)
    start_execution: Rate | None = None
    state_transition: Rate | None = None


@dataclass(frozen=True, slots=True)
class EffectiveQuota:
    """A quota of a project as it counts now, and where it comes from.

    ``of_server``: the value for every project; ``ceiling``: the most that owners may set, None for
    no limit. ``is_fixed``: the operator has set it for this project, so that owners may not.
    ``stored``: what the owners have set.
    """

    name: str
    value: Any
    of_server: Any
    ceiling: Any
    is_fixed: bool
    stored: StoredSetting | None

    @property
    def is_rate(self) -> bool:
        """Whether it is a rate, not a number."""
        return self.name in _RATES

    @property
    def may_be_unlimited(self) -> bool:
        """Whether owners may choose to have no limit, which the server has."""
        return self.name in _UNLIMITED and self.ceiling is None and self.of_server is not None


KIND = "quota"
"""The kind of the owners' settings (``console.db.project_settings``), by name of the quota."""
_RATES = {"start_execution", "start_link", "state_transition"}
_UNLIMITED = {*_RATES, "open_executions"}
_PROJECTS, _CEILING = "projects", "ceiling"
_APART = (_PROJECTS, _CEILING)


def quotas_of(project: str) -> Quotas:
    """Return the quotas of a project (its name); a branch has those of its parent."""
    project = parent_name(project)
    of_operator = _quotas(project) if settings.STATEYARD_QUOTAS else _AWS
    if not _names_in_use():
        return of_operator
    own = _own_values(project)
    return replace(of_operator, **own) if own else of_operator


_AWS = Quotas()


def _names_in_use() -> frozenset[str]:
    """Return the quotas that the owners of any project have set."""
    from console.db import project_settings  # not at the top: the settings of Django load this

    return project_settings.names_in_use(KIND)


def _own_values(project: str) -> dict[str, Any]:
    """Return what the owners have set, as far as it counts: within today's ceiling."""
    from console.db import project_settings

    stored = project_settings.read_settings(project, KIND)
    ceiling, fixed = ceiling_of(project), _fixed(project)
    return {
        name: _at_most(_value(name, row.value, KIND), getattr(ceiling, name))
        for name, row in stored.items()
        if name in _FIELDS and name not in fixed
    }


def effective_quotas(project: str) -> list[EffectiveQuota]:
    """Return all quotas of a project (its name) as they count now."""
    from console.db import project_settings

    stored = project_settings.read_settings(project, KIND)
    values, ceiling, fixed = quotas_of(project), ceiling_of(project), _fixed(project)
    of_server = _of_server()
    return [
        EffectiveQuota(
            name,
            getattr(values, name),
            getattr(of_server, name),
            getattr(ceiling, name),
            name in fixed,
            stored.get(name),
        )
        for name in _FIELDS
    ]


def read_own_quota(project: str, name: str, value: Any) -> Any:
    """Return a quota that an owner sets, as JSON has it; raise ``SettingError``.

    It is refused if the operator has set the quota for this project, and above the ceiling.
    """
    if name not in _FIELDS:
        raise SettingError(name, "an unknown name", f"one of {', '.join(_FIELDS)}")
    for key in value if isinstance(value, dict) else ():
        if key not in ("bucket", "refill"):
            raise SettingError(f"{name}: {key}", "an unknown name", "bucket and refill")
    quota = _value(name, value, "")
    if name in _fixed(project):
        raise SettingError(name, show_quota(quota), "no value: the operator's file sets this quota")
    most = getattr(ceiling_of(project), name)
    if _at_most(quota, most) != quota:
        expected = f"at most {show_quota(most)}, the operator's ceiling"
        raise SettingError(name, show_quota(quota), expected)
    return asdict(quota) if isinstance(quota, Rate) else quota


def show_quota(value: Any) -> str:
    """Return a quota in words."""
    if value is None:
        return "no limit"
    if isinstance(value, Rate):
        return f"{value.bucket:,g} at once and {value.refill:,g} a second"
    return f"{value:,}"


def ceiling_of(project: str) -> Quotas:
    """Return the most that owners may set. ``project``: its name; all have the same ceiling."""
    del project
    return _ceiling() if settings.STATEYARD_QUOTAS else _AWS


def _at_most(value: Any, most: Any) -> Any:
    """Return a value, or as much of it as there may be."""
    if most is None:
        return value
    if value is None:
        return most
    if isinstance(value, Rate):
        return Rate(min(value.bucket, most.bucket), min(value.refill, most.refill))
    return min(value, most)


def _fixed(project: str) -> dict[str, Any]:
    """Return the quotas that the operator has set for this project alone."""
    fixed: dict[str, Any] = settings.STATEYARD_QUOTAS.get(_PROJECTS, {}).get(project, {})
    return fixed


def _of_server() -> Quotas:
    """Return the quotas of a project without any of its own."""
    return _quotas("") if settings.STATEYARD_QUOTAS else _AWS


@lru_cache(maxsize=1)
def _ceiling() -> Quotas:
    configured = settings.STATEYARD_QUOTAS.get(_CEILING, {})
    return replace(_of_server(), **_checked(configured, f"quotas: {_CEILING}"))


@lru_cache(maxsize=256)
def _quotas(project: str) -> Quotas:
    configured: dict[str, Any] = settings.STATEYARD_QUOTAS
    own = configured.get(_PROJECTS, {}).get(project, {})
    place = f"quotas: {_PROJECTS}: {project}"
    return replace(_AWS, **_checked(_of_all(configured), "quotas") | _checked(own, place))


def limit_starts() -> bool:
    """Tell whether a project has a rate of starts."""
    of_operator = bool(settings.STATEYARD_QUOTAS) and _limit_starts()
    return of_operator or "start_execution" in _names_in_use()


def limit_transitions() -> bool:
    """Tell whether a project may have a rate of transitions: if not, nothing has to look it up."""
    return bool(settings.STATEYARD_QUOTAS) or "state_transition" in _names_in_use()


@lru_cache(maxsize=1)
def _limit_starts() -> bool:
    configured: dict[str, Any] = settings.STATEYARD_QUOTAS
    every = [configured, *configured.get(_PROJECTS, {}).values()]
    return any(entry.get("start_execution") is not None for entry in every)


def check_quotas(configured: dict[str, Any], where: str) -> None:
    """Raise ``SettingError`` unless an object says quotas. ``where``: the file or variable."""
    _checked(_of_all(configured), where)
    ceiling = configured.get(_CEILING, {})
    if not isinstance(ceiling, dict):
        raise SettingError(f"{where}: {_CEILING}", repr(ceiling), "an object of quotas")
    _checked(ceiling, f"{where}: {_CEILING}")
    projects = configured.get(_PROJECTS, {})
    if not isinstance(projects, dict):
        raise SettingError(f"{where}: {_PROJECTS}", repr(projects), "an object of project names")
    for name, own in projects.items():
        place = f"{where}: {_PROJECTS}: {name}"
        if not isinstance(own, dict):
            raise SettingError(place, repr(own), "an object of quotas")
        _checked(own, place)


def _of_all(configured: dict[str, Any]) -> dict[str, Any]:
    """Return what counts for every project."""
    return {name: value for name, value in configured.items() if name not in _APART}


def forget() -> None:
    """Read the settings anew."""
    _quotas.cache_clear()
    _ceiling.cache_clear()
    _limit_starts.cache_clear()


def _checked(entries: dict[str, Any], place: str) -> dict[str, Any]:
    for name in entries:
        if name not in _FIELDS:
            expected = f"one of {', '.join(_FIELDS)}"
            raise SettingError(f"{place}: {name}", "an unknown name", expected)
    return {name: _value(name, value, place) for name, value in entries.items()}


_FIELDS = tuple(field.name for field in fields(Quotas))


def _value(name: str, value: Any, place: str) -> Any:
    place = f"{place}: {name}" if place else name
    if value is None and name in _UNLIMITED:
        return None
    if name not in _RATES:
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise SettingError(place, repr(value), "a whole number from 0")
        return value
    try:
        rate = Rate(float(value["bucket"]), float(value["refill"]))
    except (TypeError, KeyError, ValueError):
        rate = Rate(0, 0)
    if not (1 <= rate.bucket < math.inf and 0 < rate.refill < math.inf):
        expected = '{"bucket": at least 1, "refill": a second, above 0}'
        raise SettingError(place, repr(value), expected)
    return rate
