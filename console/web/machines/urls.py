"""URLs of state machines: the list, a machine's page, and its definition."""

from __future__ import annotations

from django.urls import path

from console.feature import ViewModule
from console.web.core.addresses import MACHINE

views = ViewModule("console.web.machines.views")
start_views = ViewModule("console.web.machines.start_views")

urlpatterns = [
    path("samples/start/", views.start_sample, name="sample-start"),
    path("machines/", views.machine_list, name="machines"),
    path(MACHINE, views.machine_page, name="machine"),
    path(f"{MACHINE}_new", views.machine_execution_changes, name="machine-updates"),
    path(f"{MACHINE}definition/", views.definition_page, name="definition"),
    path(f"{MACHINE}definition.json", views.definition_json, name="download"),
    path(f"{MACHINE}settings/", views.settings_page, name="machine-settings"),
    path(f"{MACHINE}start/", start_views.start_page, name="start"),
    path(f"{MACHINE}delete/", views.delete_machine, name="delete"),
]
