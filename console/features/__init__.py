"""The features: each is one package, imports the core, and is imported by nothing of it."""

NAMES = (
    "alarms",
    "approvals",
    "bulk",
    "compare",
    "doctor",
    "editor",
    "logs",
    "metrics",
    "notifications",
    "palette",
    "projects",
    "test_state",
)
"""All features. A server has them unless ``STATEYARD_FEATURES`` says otherwise."""
