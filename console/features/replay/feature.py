"""Declare the feature: a new execution that begins in a state of an earlier one."""

from console.feature import Feature, Hook

FEATURE = Feature(
    name="replay",
    urls="console.features.replay.urls",
    pages={"replay": {"GET": ("StartExecution",), "POST": ("StartExecution",)}},
    hooks={Hook.REPLAY_POINT: "console.features.replay.plans.replay_point"},
)
