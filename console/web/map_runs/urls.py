"""URLs of the package map_runs."""

from __future__ import annotations

from django.urls import path

from console.web.core.addresses import EXECUTION
from console.web.map_runs import views

urlpatterns = [
    path(f"{EXECUTION}map-runs/<number:number>/", views.map_run_page, name="map-run"),
    path(
        f"{EXECUTION}map-runs/<number:number>/_delta", views.map_run_changes, name="map-run-delta"
    ),
]
