"""Join the addresses of all rooms. An address that begins with an underscore answers a fragment.

Django takes the first address that matches. The rooms stand from the last one to the first one, so
that the particular address of a later room (``machines/new/``, ``scenario.json``) comes before the
general one of an earlier room (``machines/<name>/``, ``<field>.json``).
"""

from __future__ import annotations

from django.urls import include, path, register_converter

from console.web.core.numbers import NumberConverter

register_converter(NumberConverter, "number")
_ROOMS = (
    "overview",
    "palette",
    "bulk",
    "operations",
    "people",
    "alarms",
    "rules",
    "editor",
    "test_state",
    "metrics",
    "machines",
    "tasks",
    "map_runs",
    "search",
    "execution",
    "masking",
    "core",
)
urlpatterns = [path("", include(f"console.web.{room}.urls")) for room in _ROOMS]
