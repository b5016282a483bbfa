"""URLs of insights: the grid of recent executions, and figures of each state."""

from __future__ import annotations

from django.urls import path

from console.feature import ViewModule
from console.web.core.addresses import MACHINE

views = ViewModule("console.features.insights.views")

urlpatterns = [
    path(f"{MACHINE}grid/", views.grid_page, name="grid"),
    path(f"{MACHINE}insights/", views.insights_page, name="insights"),
]
