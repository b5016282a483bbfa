"""Declare the feature: the command ``load``, a load test of a state machine."""

from console.feature import Feature, Subcommand

FEATURE = Feature(
    name="load",
    commands={
        "load": Subcommand(
            "Talk to a server",
            "start executions at a constant rate; report latency and limits",
            "console.features.load.cli",
        )
    },
)
