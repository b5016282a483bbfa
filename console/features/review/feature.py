"""Declare the feature: the command ``review``, which compares state machines of two commits."""

from console.feature import Feature, Subcommand

FEATURE = Feature(
    name="review",
    commands={
        "review": Subcommand(
            "Definitions", "compare the state machines of two commits, for a pull request"
        ),
    },
    needs=("exports", "metrics"),
)
