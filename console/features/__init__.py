"""The features: each is one package, imports the core, and is imported by nothing of it."""

NAMES = (
    "access_keys",
    "account",
    "alarms",
    "approvals",
    "audit",
    "branches",
    "bulk",
    "compare",
    "doctor",
    "editor",
    "hot_states",
    "logs",
    "metrics",
    "named_inputs",
    "notifications",
    "palette",
    "pause",
    "breakpoints",
    "project_targets",
    "project_settings",
    "projects",
    "resilience",
    "sign_in",
    "test_state",
)
"""All features. A server has them unless ``STATEYARD_FEATURES`` says otherwise."""
