"""Summaries: one line per execution, made by a JSONata expression in a tag of its state machine."""

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
