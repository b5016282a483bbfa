"""Declare the feature: the page with the ancestors and descendants of an execution."""

from console.feature import Feature

FEATURE = Feature(
    name="execution_tree",
    urls="console.features.execution_tree.urls",
    pages={"family": {"GET": ("ViewPages",)}},
)
