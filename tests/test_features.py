"""What can be left out is a feature, a feature is one folder, and the core imports no feature.

``TO_CUT`` has the imports of the core that are still to be turned round. It may only shrink.
"""

from __future__ import annotations

from tests.test_architecture import dotted, imports, modules

FOLDER = "console.features."
TO_CUT = {
    ("console.awsapi.masking", "console.features.logs.streams"),
    ("console.awsapi.operations", "console.features.test_state.operations"),
    ("console.awsapi.operations.state_machines", "console.features.logs.log_groups"),
    ("console.awsapi.services", "console.features.alarms.operations"),
    ("console.awsapi.services", "console.features.logs.operations"),
    ("console.awsapi.services", "console.features.metrics.operations"),
    ("console.awsapi.services", "console.features.notifications.operations.events"),
    ("console.awsapi.services", "console.features.notifications.operations.scheduler"),
    ("console.models", "console.features.alarms.models"),
    ("console.models", "console.features.bulk.models"),
    ("console.models", "console.features.logs.function_log_models"),
    ("console.models", "console.features.logs.models"),
    ("console.models", "console.features.metrics.models"),
    ("console.store.machines.machines", "console.features.logs.log_groups"),
    ("console.store.people.people", "console.features.notifications.store.start_links"),
    ("console.web.execution.audit_trail", "console.features.approvals.store"),
    ("console.web.execution.function_calls", "console.features.logs.function_log_store"),
    ("console.web.machines.settings_views", "console.features.logs.log_groups"),
    ("console.web.people.audit_rows", "console.features.approvals.store"),
    ("console.web.people.audit_rows", "console.features.notifications.store.start_links"),
    ("console.web.tasks.answers", "console.features.approvals.store"),
    ("console.web.tasks.forms", "console.features.approvals.store"),
    ("console.web.tasks.many_views", "console.features.approvals.store"),
    ("console.web.tasks.task_views", "console.features.approvals.messages"),
    ("console.web.tasks.task_views", "console.features.approvals.questions"),
    ("console.web.tasks.task_views", "console.features.approvals.store"),
    ("console.web.tasks.task_views", "console.features.notifications.notices"),
    ("console.worker.embedded", "console.features.logs.jobs"),
    ("console.worker.maintenance", "console.features.alarms.jobs"),
    ("console.worker.maintenance", "console.features.bulk.store"),
    ("console.worker.maintenance", "console.features.logs.function_log_store"),
    ("console.worker.maintenance", "console.features.metrics.rollups"),
    ("console.worker.maintenance", "console.features.notifications.relay"),
    ("console.worker.maintenance", "console.features.notifications.store.deliveries"),
    ("console.worker.task_delivery", "console.features.logs.jobs"),
}
OUTSIDE = ("console.migrations", "console.management", "console.features")
"""No part of the core: migrations keep names of their time, commands and features import all."""


def feature_of(module: str) -> str:
    """Return the feature that a module belongs to, "" for one of the core."""
    if not module.startswith(FOLDER):
        return ""
    return module.removeprefix(FOLDER).partition(".")[0]


def core_imports_of_features() -> set[tuple[str, str]]:
    """Return (module of the core, module of a feature that it imports)."""
    files = {dotted(path): path for path in modules("console")}
    found = {
        (module, name)
        for module, path in files.items()
        if not module.startswith(OUTSIDE) and not feature_of(module)
        for name in imports(path) & set(files)
        if feature_of(name)
    }
    # `from package import module` names both
    return {(one, name) for one, name in found if not _has_inner(found, one, name)}


def _has_inner(found: set[tuple[str, str]], module: str, package: str) -> bool:
    return any(one == module and name.startswith(f"{package}.") for one, name in found)


def test_the_core_imports_no_feature() -> None:
    """But for what is named, and only as long as it does so."""
    found = core_imports_of_features()
    assert sorted(found - TO_CUT) == []
    assert sorted(TO_CUT - found) == [], "take these out of TO_CUT"
