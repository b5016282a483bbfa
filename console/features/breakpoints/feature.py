"""Declare the feature: breakpoints of executions, on pages and in an API that starts with them."""

from console.feature import Feature, Hook

_DEBUG = ("DebugExecution",)

FEATURE = Feature(
    name="breakpoints",
    urls="console.features.breakpoints.urls",
    pages={
        "breakpoints": {"GET": _DEBUG, "POST": _DEBUG},
        "halted-lines": {"GET": ("ViewPages",), "POST": ("PutProjectSetting",)},
        # a signed call: the view says who may make it
        "api-execution-start": {"POST": ("anybody",)},
    },
    rights={"editor": _DEBUG},
    hooks={Hook.SETTING_SECTIONS: "console.features.breakpoints.setting.sections"},
)
