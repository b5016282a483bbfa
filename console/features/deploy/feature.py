"""Declare the feature: the commands that check, deploy and write state machines in files."""

from console.feature import Feature, Subcommand

FEATURE = Feature(
    name="deploy",
    commands={
        "lint": Subcommand(
            "Definitions",
            "check definitions; exit code 1 if one has an error",
            "console.features.deploy.commands.lint",
        ),
        "deploy": Subcommand(
            "Talk to a server",
            "bring the state machines of files and projects onto a server",
            "console.features.deploy.commands.deploy",
        ),
        "pull": Subcommand(
            "Talk to a server",
            "write state machines and their last executions to files",
            "console.features.deploy.commands.pull",
        ),
        "export": Subcommand(
            "Talk to a server",
            "print a state machine as ASL, or for another tool",
            "console.features.deploy.commands.export",
        ),
        "export_machines": Subcommand("Data", "print the state machines of a project as JSON"),
        "import_machines": Subcommand("Data", "create or update state machines from that JSON"),
    },
)
