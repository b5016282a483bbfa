"""The one door through which a feature adds to the console.

A feature is what can be left out: a package of ``console.features`` whose module ``feature`` has a
``FEATURE``. Everything else of it is loaded by names that are in there. ``STATEYARD_FEATURES``
chooses the features of a server; the address of a feature that is left out is not found.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from django.conf import settings

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Feature:
    """What a feature adds.

    ``urls``: the module of its addresses. ``pages``: the rights that these take, as ``PAGES`` of
    ``console.web.core.rights`` has them.
    """

    name: str
    urls: str = ""
    pages: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)


@cache
def chosen_features() -> tuple[Feature, ...]:
    """Return the features of this server, in the order of ``console.features.NAMES``."""
    names = settings.STATEYARD_FEATURES
    return tuple(import_module(f"console.features.{name}.feature").FEATURE for name in names)


def has_feature(name: str) -> bool:
    """Tell whether this server has a feature."""
    return name in settings.STATEYARD_FEATURES
