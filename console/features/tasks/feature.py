"""Declare the feature: pages of open tasks and of activities."""

from console.feature import Feature, Hook

_ANSWERS = ("SendTaskSuccess", "SendTaskFailure", "SendTaskHeartbeat")

FEATURE = Feature(
    name="tasks",
    urls="console.features.tasks.urls",
    pages={
        "task": {"GET": ("ViewPages",), "POST": _ANSWERS},
        "tasks": {"GET": ("ViewPages",), "POST": _ANSWERS},
        "tasks-updates": {"GET": ("ViewPages",)},
        "activities": {"GET": ("ViewPages",), "POST": ("CreateActivity",)},
        "activity": {"GET": ("ViewPages",), "POST": ("DeleteActivity", "TagResource")},
    },
    hooks={
        Hook.ARN_ADDRESS: "console.features.tasks.addresses.activity_address",
        Hook.ARN_OBJECTS: "console.features.tasks.addresses.objects_with_page",
    },
)
