"""Hot states: failures, retries, duration and cost of each state, shown on the graph."""

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
