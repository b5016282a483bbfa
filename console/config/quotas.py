"""Quotas of a project: resource limits and request rates.

AWS's numbers unless ``DATA/quotas.json`` or ``STATEYARD_QUOTAS`` says otherwise: an object of the
members of ``Quotas``, and under ``projects`` by name what differs for one. No rate by default.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any

from django.conf import settings

from console.config.environment import SettingError


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


_RATES = {"start_execution", "start_link", "state_transition"}
_PROJECTS = "projects"


def quotas_of(project: str) -> Quotas:
    """Return the quotas of a project (its name)."""
    return _quotas(project) if settings.STATEYARD_QUOTAS else _AWS


_AWS = Quotas()


@lru_cache(maxsize=256)
def _quotas(project: str) -> Quotas:
    given: dict[str, Any] = settings.STATEYARD_QUOTAS
    own = given.get(_PROJECTS, {}).get(project, {})
    place = f"quotas: {_PROJECTS}: {project}"
    return replace(_AWS, **_checked(_of_all(given), "quotas") | _checked(own, place))


def limit_starts() -> bool:
    """Tell whether a project has a rate of starts."""
    return bool(settings.STATEYARD_QUOTAS) and _limit_starts()


@lru_cache(maxsize=1)
def _limit_starts() -> bool:
    given: dict[str, Any] = settings.STATEYARD_QUOTAS
    every = [given, *given.get(_PROJECTS, {}).values()]
    return any(one.get("start_execution") is not None for one in every)


def check_quotas(given: dict[str, Any], where: str) -> None:
    """Raise ``SettingError`` unless an object says quotas. ``where``: the file or variable."""
    _checked(_of_all(given), where)
    projects = given.get(_PROJECTS, {})
    if not isinstance(projects, dict):
        raise SettingError(f"{where}: {_PROJECTS}", repr(projects), "an object of project names")
    for name, own in projects.items():
        place = f"{where}: {_PROJECTS}: {name}"
        if not isinstance(own, dict):
            raise SettingError(place, repr(own), "an object of quotas")
        _checked(own, place)


def _of_all(given: dict[str, Any]) -> dict[str, Any]:
    """Return what counts for every project."""
    return {name: value for name, value in given.items() if name != _PROJECTS}


def forget() -> None:
    """Read the settings anew."""
    _quotas.cache_clear()
    _limit_starts.cache_clear()


def _checked(given: dict[str, Any], place: str) -> dict[str, Any]:
    known = [field.name for field in fields(Quotas)]
    for name in given:
        if name not in known:
            raise SettingError(f"{place}: {name}", "an unknown name", f"one of {', '.join(known)}")
    return {name: _value(name, value, place) for name, value in given.items()}


def _value(name: str, value: Any, place: str) -> Any:
    if value is None and (name in _RATES or name == "open_executions"):
        return None
    if name not in _RATES:
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise SettingError(f"{place}: {name}", repr(value), "a whole number from 0")
        return value
    try:
        rate = Rate(float(value["bucket"]), float(value["refill"]))
    except (TypeError, KeyError, ValueError):
        rate = Rate(0, 0)
    if not (1 <= rate.bucket < math.inf and 0 < rate.refill < math.inf):
        wanted = '{"bucket": at least 1, "refill": a second, above 0}'
        raise SettingError(f"{place}: {name}", repr(value), wanted)
    return rate
