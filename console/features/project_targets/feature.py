"""Targets and functions that owners set for their project on pages, without a file."""

from console.feature import Feature, Hook

_CHANGE = ("PutProjectSetting",)

FEATURE = Feature(
    name="project_targets",
    urls="console.features.project_targets.urls",
    pages={
        "own-targets": {"GET": ("ViewPages",)},
        "own-target": {"GET": _CHANGE, "POST": _CHANGE},
        "own-target-remove": {"POST": ("RemoveProjectSetting",)},
        "own-target-test": {"POST": _CHANGE},
    },
    hooks={
        Hook.PROJECT_FUNCTIONS: "console.features.project_targets.entries.functions_of_page",
        Hook.PROJECT_TARGETS: "console.features.project_targets.entries.targets_of_page",
        Hook.SETTING_SECTIONS: "console.features.project_targets.portable.sections",
    },
)
