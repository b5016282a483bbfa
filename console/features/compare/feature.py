"""Compare: two executions side by side, up to where they part."""

from console.feature import Feature

FEATURE = Feature(
    name="compare",
    urls="console.features.compare.urls",
    pages={
        "compare": {"GET": ("ViewPages",)},
    },
)
