"""URLs of the feature pause."""

from __future__ import annotations

from django.urls import path

from console.features.pause import api_views, views
from console.web.core.addresses import EXECUTION

urlpatterns = [
    path(f"{EXECUTION}pause/", views.pause_page, name="pause"),
    path(f"{EXECUTION}resume/", views.resume, name="resume"),
    path("api/executions/pause", api_views.pause, name="api-execution-pause"),
    path("api/executions/resume", api_views.resume, name="api-execution-resume"),
    path("api/executions/paused", api_views.paused, name="api-executions-paused"),
]
