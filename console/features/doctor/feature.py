"""Doctor: check a deployment, and the invariants of the engine's rows."""

from console.feature import Feature, Subcommand

FEATURE = Feature(
    name="doctor",
    commands={
        "doctor": Subcommand("Data", "check a deployment, and say how to fix problems"),
        "check_invariants": Subcommand("Data", "check what the database must hold"),
    },
)
