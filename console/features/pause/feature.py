"""Pause and resume single executions, on their page and by an HTTP API."""

from console.feature import Feature, Hook, Subcommand

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
    commands={
        "pause": Subcommand(
            "Talk to a server",
            "pause an execution, all of a state machine, or all schedules",
            "console.features.pause.cli.pause",
        ),
        "resume": Subcommand(
            "Talk to a server",
            "resume an execution, all of a state machine, or all schedules",
            "console.features.pause.cli.resume",
        ),
        "status": Subcommand(
            "Talk to a server",
            "show what is paused, since when and by whom",
            "console.features.pause.cli.status",
        ),
    },
)
