"""Declare the feature: reproduce imported executions, on a page of each."""

from console.feature import Feature, Subcommand

FEATURE = Feature(
    name="reproduce",
    urls="console.features.reproduce.urls",
    pages={"reproduce": {"GET": ("StartExecution",), "POST": ("StartExecution",)}},
    commands={
        "test": Subcommand(
            "Definitions",
            "make a test of an execution or a definition: generate",
            "console.features.reproduce.commands.test",
        ),
        "fetch": Subcommand(
            "Talk to a server",
            "save executions of AWS or a server as files, with their children",
            "console.features.reproduce.commands.fetch",
        ),
        "replay": Subcommand(
            "Definitions", "run recorded executions again: same path, same output?"
        ),
    },
)
