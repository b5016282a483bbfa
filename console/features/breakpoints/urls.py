"""URLs of breakpoints, where executions halt until a person continues them."""

from __future__ import annotations

from django.urls import path

from console.feature import ViewModule
from console.web.core.addresses import EXECUTION

api_views = ViewModule("console.features.breakpoints.api_views")
list_views = ViewModule("console.features.breakpoints.list_views")
views = ViewModule("console.features.breakpoints.views")

urlpatterns = [
    path(f"{EXECUTION}breakpoints/", views.breakpoints_page, name="breakpoints"),
    path("breakpoints/", list_views.halted_lines_page, name="halted-lines"),
    path("api/executions/start", api_views.start, name="api-execution-start"),
]
