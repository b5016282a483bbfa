"""Declare the feature: one line per execution, from an expression in its state machine's tag."""

from console.feature import Feature, Hook

FEATURE = Feature(
    name="summary",
    jobs="console.features.summary.jobs",
    hooks={
        Hook.EXECUTION_PAGE: "console.features.summary.shown.execution_page",
        Hook.EXECUTION_SUMMARIES: "console.features.summary.shown.summaries_of",
        Hook.FRESH_SUMMARY: "console.features.summary.shown.fresh_summary",
        Hook.MACHINE_HINT: "console.features.summary.shown.machine_hint",
        Hook.TAG_PROBLEM: "console.features.summary.shown.tag_problem",
    },
)
