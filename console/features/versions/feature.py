"""Declare the feature: the page of versions, aliases and revisions, and the diff of two."""

from console.feature import Feature, Hook

FEATURE = Feature(
    name="versions",
    urls="console.features.versions.urls",
    pages={
        "versions": {
            "GET": ("ViewPages",),
            "POST": (
                "UpdateStateMachine",
                "PublishStateMachineVersion",
                "DeleteStateMachineVersion",
                "CreateStateMachineAlias",
                "UpdateStateMachineAlias",
                "DeleteStateMachineAlias",
            ),
        },
        "diff": {"GET": ("ViewPages",)},
    },
    hooks={Hook.DEFINITION_PAGE: "console.features.versions.definition_diff.drift_context"},
)
