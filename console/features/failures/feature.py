"""Declare the feature: failures by kind, on a page of its own and on the overview."""

from console.feature import Feature, Hook

FEATURE = Feature(
    name="failures",
    urls="console.features.failures.urls",
    pages={"failures": {"GET": ("ViewPages",)}},
    hooks={Hook.OVERVIEW_CHANGED: "console.features.failures.overview.failure_context"},
)
