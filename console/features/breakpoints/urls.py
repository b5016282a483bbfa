"""The addresses of the feature breakpoints."""

from __future__ import annotations

from django.urls import path

from console.features.breakpoints import api_views, list_views, views
from console.web.core.addresses import EXECUTION

urlpatterns = [
    path(f"{EXECUTION}breakpoints/", views.breakpoints_page, name="breakpoints"),
    path("breakpoints/", list_views.halted_lines_page, name="halted-lines"),
    path("api/executions/start", api_views.start, name="api-execution-start"),
]
