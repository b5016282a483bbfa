"""All URLs: the URLs of features and of the packages. A leading underscore marks a fragment.

Django uses the first match. Features come first, so that a specific URL (``machines/new/``,
``scenario.json``) precedes the general one of a package (``machines/<name>/``, ``<field>.json``).
"""

from __future__ import annotations

from django.urls import include, path

from console.feature import chosen_features

_PACKAGES = (
    "overview",
    "people",
    "machines",
    "search",
    "execution",
    "masking",
    "core",
)
_OF_FEATURES = [feature.urls for feature in chosen_features() if feature.urls]
_OF_PACKAGES = [f"console.web.{package}.urls" for package in _PACKAGES]
urlpatterns = [path("", include(urls)) for urls in (*_OF_FEATURES, *_OF_PACKAGES)]
