"""Declare the feature: the grid of recent executions, and figures of each state."""

from console.feature import Feature

FEATURE = Feature(
    name="insights",
    urls="console.features.insights.urls",
    pages={"grid": {"GET": ("ViewPages",)}, "insights": {"GET": ("ViewPages",)}},
)
