"""Approvals: links by which people without an account answer a task."""

from console.feature import Feature

FEATURE = Feature(
    name="approvals",
    urls="console.features.approvals.urls",
    pages={
        "approval": {"GET": ("anybody",), "POST": ("anybody",)},
    },
    needs=("notifications",),
)
