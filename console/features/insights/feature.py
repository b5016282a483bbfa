"""Declare the feature: the grid of recent executions, figures of each state, and trends."""

from console.feature import Feature, Hook

FEATURE = Feature(
    name="insights",
    urls="console.features.insights.urls",
    hooks={Hook.OVERVIEW_MACHINES: "console.features.insights.trends.trend_context"},
    pages={"grid": {"GET": ("ViewPages",)}, "insights": {"GET": ("ViewPages",)}},
)
