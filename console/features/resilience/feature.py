"""Declare the feature: a report on Retriers, Catchers and timeouts, tried with injected errors."""

from console.feature import Feature, Subcommand

FEATURE = Feature(
    name="resilience",
    urls="console.features.resilience.urls",
    pages={"resilience": {"GET": ("ViewPages",)}},
    commands={
        "resilience": Subcommand(
            "Definitions",
            "try Retriers, Catchers and timeouts, and name weaknesses",
            "console.features.resilience.cli",
        ),
    },
)
