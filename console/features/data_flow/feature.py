"""Declare the feature: the tab with the data flow of a state, computed from the history."""

from console.feature import Feature, Hook

FEATURE = Feature(
    name="data_flow",
    hooks={Hook.STEP_FLOW: "console.features.data_flow.stages.flow_of_step"},
)
