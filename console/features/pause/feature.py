"""Pause and resume single executions, on their page and by an HTTP API."""

from console.feature import Feature, Hook

FEATURE = Feature(
    name="pause",
    urls="console.features.pause.urls",
    pages={
        "pause": {"GET": ("PauseExecution",), "POST": ("PauseExecution",)},
        "resume": {"POST": ("ResumeExecution",)},
        # signed calls: the views say who may make them
        "api-execution-pause": {"POST": ("anybody",)},
        "api-execution-resume": {"POST": ("anybody",)},
        "api-executions-paused": {"GET": ("anybody",)},
    },
    parameters={"api-executions-paused": ("execution",)},
    hooks={Hook.OVERVIEW_LIVE: "console.features.pause.overview.overview_live"},
)
