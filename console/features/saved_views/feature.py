"""Declare the feature: saved views of the lists of executions."""

from console.feature import Feature, Hook

FEATURE = Feature(
    name="saved_views",
    urls="console.features.saved_views.urls",
    pages={
        "views": {"POST": ("PutView", "DeleteView")},
        "view-count": {"GET": ("ViewPages",)},
    },
    rights={"operator": ("PutView", "DeleteView")},
    hooks={
        Hook.EXECUTION_LIST: "console.features.saved_views.listed.list_context",
        Hook.LIST_REDIRECT: "console.features.saved_views.listed.default_view",
    },
)
