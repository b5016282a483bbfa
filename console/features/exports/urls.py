"""Addresses of downloads and shared graphs."""

from __future__ import annotations

from django.urls import path

from console.feature import ViewModule
from console.web.core.addresses import EXECUTION, MACHINE

views = ViewModule("console.features.exports.views")

urlpatterns = [
    path(f"{MACHINE}export/<str:tool>", views.machine_export, name="machine-export"),
    path(f"{MACHINE}definition.svg", views.machine_svg, name="machine-svg"),
    path(f"{MACHINE}definition.mmd", views.machine_mermaid, name="machine-mermaid"),
    path(f"{EXECUTION}events.csv", views.history_csv, name="events-csv"),
    path(f"{EXECUTION}events.json", views.history_json, name="events-json"),
    path(f"{EXECUTION}export.json", views.execution_json, name="execution-export"),
    path(f"{EXECUTION}graph.svg", views.execution_svg, name="execution-svg"),
    path(f"{EXECUTION}outline.txt", views.execution_outline, name="outline"),
    path(f"{EXECUTION}share/", views.share_page, name="share"),
    path("shared/<str:token>/<str:kind>", views.shared_picture, name="shared"),
]
