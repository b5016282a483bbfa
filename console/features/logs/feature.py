"""Logs: CloudWatch Logs of executions and of functions."""

from console.feature import Feature

FEATURE = Feature(
    name="logs",
    urls="console.features.logs.urls",
    pages={
        "machine-logs": {"GET": ("ViewPages",)},
    },
    operations={"logs": "console.features.logs.operations"},
)
