"""URLs to pause and resume single executions."""

from __future__ import annotations

from django.urls import path

from console.feature import ViewModule
from console.web.core.addresses import EXECUTION

api_views = ViewModule("console.features.pause.api_views")
views = ViewModule("console.features.pause.views")

urlpatterns = [
    path(f"{EXECUTION}pause/", views.pause_page, name="pause"),
    path(f"{EXECUTION}resume/", views.resume, name="resume"),
    path("api/executions/pause", api_views.pause, name="api-execution-pause"),
    path("api/executions/resume", api_views.resume, name="api-execution-resume"),
    path("api/executions/paused", api_views.paused, name="api-executions-paused"),
]
