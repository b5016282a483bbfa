"""Declare the feature: the audit's pages, its chain of hashes, and its stream."""

from console.feature import Feature, Hook, Subcommand

FEATURE = Feature(
    name="audit",
    urls="console.features.audit.urls",
    pages={
        "audit": {"GET": ("ViewPages",)},
        "audit-csv": {"GET": ("ViewPages",)},
        "server-audit": {"GET": ("ViewServerAudit",)},
        "server-audit-csv": {"GET": ("ViewServerAudit",)},
    },
    rights={"administrator": ("ViewServerAudit",)},
    parameters={
        "audit-csv": ("act", "by", "from", "key", "region", "to", "what", "who"),
        "server-audit-csv": ("act", "by", "from", "key", "to", "what", "who"),
    },
    jobs="console.features.audit.jobs",
    hooks={
        Hook.PROJECT_AUDIT_NEEDED: "console.features.audit.stream.has_unsent_rows",
        Hook.SERVER_CHECKS: "console.features.audit.stream_state.check_stream",
        Hook.SERVER_GAUGES: "console.features.audit.stream_state.measure_stream",
    },
    commands={
        "verify_audit": Subcommand(
            "Data", "find audit rows that were changed, removed or inserted"
        ),
    },
)
