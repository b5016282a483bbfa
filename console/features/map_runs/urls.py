"""URLs of Map Runs, with the child executions of a distributed Map."""

from __future__ import annotations

from django.urls import path

from console.feature import ViewModule
from console.web.core.addresses import EXECUTION

views = ViewModule("console.features.map_runs.views")

urlpatterns = [
    path(f"{EXECUTION}map-runs/<number:number>/", views.map_run_page, name="map-run"),
    path(
        f"{EXECUTION}map-runs/<number:number>/_delta", views.map_run_changes, name="map-run-delta"
    ),
]
