"""Declare the feature: the page of a Map Run, with its counts, child executions and settings."""

from console.feature import Feature, Hook

FEATURE = Feature(
    name="map_runs",
    urls="console.features.map_runs.urls",
    pages={
        "map-run": {"GET": ("ViewPages",), "POST": ("UpdateMapRun",)},
        "map-run-delta": {"GET": ("ViewPages",)},
    },
    hooks={
        Hook.ARN_ADDRESS: "console.features.map_runs.map_run_display.map_run_address",
        Hook.ARN_OBJECTS: "console.features.map_runs.map_run_display.map_runs_with_arns",
    },
)
