"""Declare the feature: import executions of AWS or another server, on a page."""

from console.feature import Feature

FEATURE = Feature(
    name="imports",
    urls="console.features.imports.urls",
    pages={
        "import": {"GET": ("ViewPages",), "POST": ("ImportExecution",)},
        "import-delete": {"POST": ("ImportExecution",)},
    },
    rights={
        "operator": ("ImportExecution",),
        "editor": ("FetchExecution",),  # from AWS, with the operator's profile
    },
)
