"""Declare the feature: settings that owners change on pages, and their export as YAML."""

from console.feature import Feature, Subcommand

_EXPORT = "ExportProjectSettings"
_CHANGE = ("PutProjectSetting", "RemoveProjectSetting")

FEATURE = Feature(
    name="project_settings",
    urls="console.features.project_settings.urls",
    pages={
        **{
            name: {"GET": ("ViewPages",), "POST": _CHANGE}
            for name in ("quotas", "denied-actions", "retention", "mocks")
        },
        "settings-file": {"GET": (_EXPORT,), "POST": _CHANGE},
        "settings-export": {"GET": (_EXPORT,)},
        # signed calls: the view says who may make them
        "api-settings": {"GET": ("anybody",), "POST": ("anybody",)},
    },
    rights={"owner": (_EXPORT,)},
    parameters={"api-settings": ("dryRun",), "settings-export": ("region",)},
    commands={
        "settings": Subcommand(
            "Talk to a server",
            "export the settings of a project as YAML, or import them",
            "console.features.project_settings.cli",
        ),
    },
)
