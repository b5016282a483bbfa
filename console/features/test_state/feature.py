"""TestState: run one state with an input without an execution, by API and on a page."""

from console.feature import Feature

FEATURE = Feature(
    name="test_state",
    urls="console.features.test_state.web.urls",
    pages={
        "test": {"GET": ("TestState",), "POST": ("TestState",)},
        "execution-scenario": {"GET": ("ViewPages",)},
    },
    rights={
        "operator": ("TestState",),
        "editor": (
            "TestUnmockedTask",  # a Task that TestState really calls
        ),
        "owner": (
            "RevealSecrets",  # of connections
        ),
    },
    parameters={"execution-scenario": ("region", "as")},
    operations={"stepfunctions": "console.features.test_state.operations"},
    needs=("data_flow",),
)
