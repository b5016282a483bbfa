"""Declare the feature: the pages of targets and functions, and of each Task's call."""

from console.feature import Feature

FEATURE = Feature(
    name="targets",
    urls="console.features.targets.urls",
    pages={
        "calls": {"GET": ("ViewPages",), "POST": ("TagResource",)},
        "targets": {"GET": ("ViewPages",)},
    },
)
