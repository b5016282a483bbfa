"""Declare the feature: faults of an execution on a page, and an API that starts with faults."""

from console.feature import Feature, Hook

FEATURE = Feature(
    name="faults",
    urls="console.features.faults.urls",
    pages={
        "faults": {"GET": ("ViewPages",)},
        # signed calls: the view says who may make them
        "api-faults": {"POST": ("anybody",)},
    },
    rights={"editor": ("InjectFaults",)},
    hooks={Hook.EXECUTION_PAGE: "console.features.faults.execution_page.execution_page"},
)
