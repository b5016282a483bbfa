"""Declare the feature: the page of operations, and the measurement of the availability."""

from console.feature import Feature

FEATURE = Feature(
    name="operations",
    urls="console.features.operations.urls",
    pages={"operations": {"GET": ("ViewPages",)}},
    jobs="console.features.operations.jobs",
)
