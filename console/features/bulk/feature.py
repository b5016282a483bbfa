"""Declare the feature: start, stop, redrive, replay, pause or resume many executions as a job."""

from console.feature import Feature

_ACTIONS = (
    *("StartExecution", "StopExecution", "RedriveExecution"),
    *("PauseExecution", "ResumeExecution"),
)

FEATURE = Feature(
    name="bulk",
    urls="console.features.bulk.urls",
    pages={
        "bulk": {
            "GET": ("ViewPages",),
            "POST": _ACTIONS,
        },
        "bulk-job": {
            "GET": ("ViewPages",),
            "POST": _ACTIONS,
        },
        # signed calls: the views say who may make them
        "api-machine-pause": {"POST": ("anybody",)},
        "api-machine-resume": {"POST": ("anybody",)},
    },
    background="console.features.bulk.jobs.BulkWork",
    needs=("replay",),
)
