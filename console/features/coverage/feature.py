"""Declare the feature: the command ``coverage``, and the coverage of tests by pytest."""

from console.feature import Feature, Hook, Subcommand

FEATURE = Feature(
    name="coverage",
    hooks={Hook.PYTEST_PLUGIN: "console.features.coverage.plugin.CoveragePlugin"},
    commands={
        "coverage": Subcommand(
            "Definitions",
            "report what was executed of state machines; a gate for CI",
            "console.features.coverage.cli",
        ),
    },
)
