"""Breakpoints and faults for the next starts of a state machine: a page, and an HTTP API."""

from console.feature import Feature, Subcommand

_CHANGE = ("SetNextStarts", "RemoveNextStarts")

FEATURE = Feature(
    name="next_starts",
    urls="console.features.next_starts.urls",
    pages={
        "next-starts": {"GET": ("ViewPages",), "POST": _CHANGE},
        # signed calls: the views say who may make them
        "api-next-starts": {"GET": ("anybody",), "POST": ("anybody",)},
        "api-next-starts-remove": {"POST": ("anybody",)},
    },
    rights={"viewer": ("ListNextStarts",), "editor": _CHANGE},
    parameters={"api-next-starts": ("machine",)},
    commands={
        "next_starts": Subcommand(
            "Talk to a server",
            "set breakpoints and faults for the next starts of a machine",
            "console.features.next_starts.cli",
        ),
    },
    needs=("breakpoints", "faults"),
)
