"""Hot states: where a state machine fails, retries, takes long and costs most, on its graph."""

from console.feature import Feature

FEATURE = Feature(
    name="hot_states",
    urls="console.features.hot_states.urls",
    pages={
        "hot-states": {"GET": ("ViewPages",)},
        "hot-state": {"GET": ("ViewPages",)},
    },
    needs=("metrics",),
)
