"""Command palette (Ctrl+K): search state machines, executions, states, people and pages."""

from console.feature import Feature

FEATURE = Feature(
    name="palette",
    urls="console.features.palette.urls",
    pages={"palette": {"GET": ("ViewPages",)}},
)
