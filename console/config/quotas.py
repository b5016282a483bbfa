"""Quotas of projects: limits of resources and request rates.

Defaults are AWS's numbers, without rates. The operator changes them in ``DATA/quotas.json`` or
``STATEYARD_QUOTAS``: an object with members of ``Quotas`` for all projects and, under ``projects``,
for single ones. Owners set quotas of their project on a page, up to a ceiling: the number under
``ceiling``, else the number for all projects. A quota that the operator has set for a project
cannot be changed by its owners.
"""

from __future__ import annotations

import math
import time
from dataclasses import asdict, dataclass, fields, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from django.conf import settings

from console.config.environment import SettingError
from console.db.branch_names import parent_name

if TYPE_CHECKING:
    from console.db.project_settings import SettingsInUse, StoredSetting


@dataclass(frozen=True, slots=True)
class Rate:
    """A token bucket: its size, and the tokens added per second (both above 0)."""

    bucket: float
    refill: float


@dataclass(frozen=True, slots=True)
class Quotas:
    """The maximum of each resource, and the rates; None: not limited.

    ``open_executions``: running executions, without children of Map Runs; AWS has 1,000,000.
    ``nesting_depth``: executions above one that a Task starts. ``waiting_calls``: long polls of one
    access key in a process; ``start_link_waits``: callers of one start link that wait in a process
    for the end of an execution; ``start_link``: the rate of one link in a process.
    ``start_execution``, ``state_transition``: for example ``{"bucket": 800, "refill": 400}``.
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
    """A quota of a project in effect, and its source.

    ``of_server``: the value for all projects; ``ceiling``: the maximum that owners may set, None
    for no limit. ``is_fixed``: set by the operator for this project, so owners may not change it.
    ``stored``: the owners' value.
    """

    name: str
    value: Any
    of_server: Any
    ceiling: Any
    is_fixed: bool
    stored: StoredSetting | None

    @property
    def is_rate(self) -> bool:
        """Whether it is a rate rather than a number."""
        return self.name in _RATES

    @property
    def may_be_unlimited(self) -> bool:
        """Whether owners may select no limit, because the server has none."""
        return self.name in _UNLIMITED and self.ceiling is None and self.of_server is not None


KIND = "quota"
"""The kind of the owners' settings in ``console.db.project_settings``; the key is the quota."""
_RATES = {"start_execution", "start_link", "state_transition"}
_UNLIMITED = {*_RATES, "open_executions"}
_PROJECTS, _CEILING = "projects", "ceiling"
_APART = (_PROJECTS, _CEILING)


def quotas_of(project: str) -> Quotas:
    """Return the quotas in effect of a project (its name); a branch has those of its parent."""
    if not settings.STATEYARD_QUOTAS and not _names_in_use():
        return _AWS
    project = parent_name(project)
    of_operator = _quotas(project) if settings.STATEYARD_QUOTAS else _AWS
    own = _own_values(project) if _names_in_use() else None
    return replace(of_operator, **own) if own else of_operator


_AWS = Quotas()
_in_use: SettingsInUse | None = None


def _names_in_use() -> frozenset[str]:
    """Return the quotas that owners of any project have set."""
    global _in_use  # noqa: PLW0603 - one a process
    if _in_use is None or time.monotonic() >= _in_use.until:
        from console.db import project_settings  # not at the top: the settings of Django load this

        _in_use = project_settings.settings_in_use(KIND)
    return _in_use.names


def _own_values(project: str) -> dict[str, Any]:
    """Return the owners' values, limited to the current ceiling."""
    from console.db import project_settings

    stored = project_settings.read_settings(project, KIND)
    ceiling, fixed = ceiling_of(project), _fixed_quotas(project)
    return {
        name: _at_most(_value(name, row.value, KIND), getattr(ceiling, name))
        for name, row in stored.items()
        if name in _FIELDS and name not in fixed
    }


def effective_quotas(project: str) -> list[EffectiveQuota]:
    """Return all quotas of a project (its name) in effect, each with its source."""
    from console.db import project_settings

    stored = project_settings.read_settings(project, KIND)
    values, ceiling, fixed = quotas_of(project), ceiling_of(project), _fixed_quotas(project)
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
    """Validate an owner's quota and return it as JSON; raise ``SettingError``.

    It is refused above the ceiling, or if the operator has set the quota for this project.
    """
    if name not in _FIELDS:
        raise SettingError(name, "an unknown name", f"one of {', '.join(_FIELDS)}")
    for key in value if isinstance(value, dict) else ():
        if key not in ("bucket", "refill"):
            raise SettingError(f"{name}: {key}", "an unknown name", "bucket and refill")
    quota = _value(name, value, "")
    if name in _fixed_quotas(project):
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
    """Return the maximum that owners may set; it is the same for every ``project`` (its name)."""
    del project
    return _ceiling() if settings.STATEYARD_QUOTAS else _AWS


def _at_most(value: Any, most: Any) -> Any:
    """Return a value, limited to a maximum."""
    if most is None:
        return value
    if value is None:
        return most
    if isinstance(value, Rate):
        return Rate(min(value.bucket, most.bucket), min(value.refill, most.refill))
    return min(value, most)


def _fixed_quotas(project: str) -> dict[str, Any]:
    """Return the quotas that the operator has set for one project."""
    fixed: dict[str, Any] = settings.STATEYARD_QUOTAS.get(_PROJECTS, {}).get(project, {})
    return fixed


def _of_server() -> Quotas:
    """Return the quotas for all projects."""
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
    """Return whether any project may have a rate of starts; without one, skip the look-up."""
    of_operator = bool(settings.STATEYARD_QUOTAS) and _limit_starts()
    return of_operator or "start_execution" in _names_in_use()


def limit_transitions() -> bool:
    """Return whether any project may have a limit of transitions; without one, skip the look-up."""
    return bool(settings.STATEYARD_QUOTAS) or "state_transition" in _names_in_use()


@lru_cache(maxsize=1)
def _limit_starts() -> bool:
    configured: dict[str, Any] = settings.STATEYARD_QUOTAS
    every = [configured, *configured.get(_PROJECTS, {}).values()]
    return any(entry.get("start_execution") is not None for entry in every)


def check_quotas(configured: dict[str, Any], where: str) -> None:
    """Raise ``SettingError`` for invalid quotas. ``where``: the file or variable."""
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
    """Return the entries for all projects."""
    return {name: value for name, value in configured.items() if name not in _APART}


def forget() -> None:
    """Clear the cached settings."""
    global _in_use  # noqa: PLW0603 - one a process
    _in_use = None
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
