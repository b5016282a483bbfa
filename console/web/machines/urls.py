"""URLs of the package machines."""

from __future__ import annotations

from django.urls import path

from console.web.core.addresses import MACHINE
from console.web.machines import (
    export_views,
    insight_views,
    machine_views,
    sample_views,
    settings_views,
    start_views,
    target_views,
    version_views,
)

urlpatterns = [
    path("samples/start/", sample_views.start_sample, name="sample-start"),
    path("machines/", machine_views.machine_list, name="machines"),
    path(MACHINE, machine_views.machine_page, name="machine"),
    path(f"{MACHINE}_new", machine_views.machine_execution_changes, name="machine-updates"),
    path(f"{MACHINE}definition/", machine_views.definition_page, name="definition"),
    path(f"{MACHINE}definition.json", export_views.definition_json, name="download"),
    path(f"{MACHINE}export/<str:tool>", export_views.machine_export, name="machine-export"),
    path(f"{MACHINE}definition.svg", export_views.machine_svg, name="machine-svg"),
    path(f"{MACHINE}definition.mmd", export_views.machine_mermaid, name="machine-mermaid"),
    path(f"{MACHINE}grid/", insight_views.grid_page, name="grid"),
    path(f"{MACHINE}insights/", insight_views.insights_page, name="insights"),
    path(f"{MACHINE}versions/", version_views.versions_page, name="versions"),
    path(f"{MACHINE}diff/", version_views.definition_diff, name="diff"),
    path(f"{MACHINE}settings/", settings_views.settings_page, name="machine-settings"),
    path(f"{MACHINE}calls/", target_views.calls_page, name="calls"),
    path(f"{MACHINE}start/", start_views.start_page, name="start"),
    path(f"{MACHINE}delete/", machine_views.delete_machine, name="delete"),
    path("targets/", target_views.target_list, name="targets"),
]
