"""Bulk actions: start, stop or redrive many executions as one job."""

from console.feature import Feature

FEATURE = Feature(
    name="bulk",
    urls="console.features.bulk.urls",
    pages={
        "bulk": {
            "GET": ("ViewPages",),
            "POST": ("StartExecution", "StopExecution", "RedriveExecution"),
        },
        "bulk-job": {
            "GET": ("ViewPages",),
            "POST": ("StartExecution", "StopExecution", "RedriveExecution"),
        },
    },
    background="console.features.bulk.jobs.BulkWork",
)
