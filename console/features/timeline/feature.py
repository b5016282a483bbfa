"""Declare the feature: the steps of an execution as bars over time, on its page."""

from console.feature import Feature, Hook

FEATURE = Feature(
    name="timeline",
    hooks={Hook.TIMELINE: "console.features.timeline.timeline_part.timeline_part"},
)
