"""Declare the feature: an editor that creates and changes state machines as text and graph."""

from console.feature import Feature

FEATURE = Feature(
    name="editor",
    urls="console.features.editor.urls",
    pages={
        "new": {"GET": ("CreateStateMachine",), "POST": ("CreateStateMachine",)},
        "check": {"POST": ("UpdateStateMachine",)},
        "edit": {"GET": ("UpdateStateMachine",), "POST": ("UpdateStateMachine",)},
        "edit-graph": {"POST": ("UpdateStateMachine",)},
        "new-draft": {"POST": ("CreateStateMachine",)},
        "draft": {"POST": ("UpdateStateMachine",)},
        "changes": {"POST": ("UpdateStateMachine",)},
    },
)
