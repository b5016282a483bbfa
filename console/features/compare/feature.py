"""Compare: two executions side by side, with the state where their paths diverge."""

from console.feature import Feature

FEATURE = Feature(
    name="compare",
    urls="console.features.compare.urls",
    pages={
        "compare": {"GET": ("ViewPages",)},
    },
)
