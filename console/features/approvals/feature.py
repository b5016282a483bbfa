"""Approvals: links with which people without an account answer a task."""

from console.feature import Feature, Hook

FEATURE = Feature(
    name="approvals",
    urls="console.features.approvals.urls",
    pages={
        "approval": {"GET": ("anybody",), "POST": ("anybody",)},
        "approval-link": {"POST": ("CreateApprovalLink",)},
    },
    rights={
        "editor": ("CreateApprovalLink",),
    },
    hooks={Hook.TASK_PAGE: "console.features.approvals.link_views.link_form_context"},
    needs=("notifications", "tasks"),
)
