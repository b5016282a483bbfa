"""The command palette: one field that finds machines, executions, states, people and pages."""

from console.feature import Feature

FEATURE = Feature(
    name="palette",
    urls="console.features.palette.urls",
    pages={"palette": {"GET": ("ViewPages",)}},
)
