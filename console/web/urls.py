"""Join the addresses of features and packages. One that begins with an underscore is a fragment.

Django takes the first address that matches. Features come first, and the packages stand from the
last one to the first one, so that a particular address (``machines/new/``, ``scenario.json``) comes
before the general one of an earlier package (``machines/<name>/``, ``<field>.json``).
"""

from __future__ import annotations

from django.urls import include, path

from console.feature import chosen_features

_PACKAGES = (
    "overview",
    "operations",
    "people",
    "machines",
    "tasks",
    "map_runs",
    "search",
    "execution",
    "masking",
    "core",
)
_OF_FEATURES = [feature.urls for feature in chosen_features() if feature.urls]
_OF_PACKAGES = [f"console.web.{package}.urls" for package in _PACKAGES]
urlpatterns = [path("", include(urls)) for urls in (*_OF_FEATURES, *_OF_PACKAGES)]
