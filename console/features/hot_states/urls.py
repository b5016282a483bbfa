"""URLs of hot states: failures, retries, duration and cost by state, on the graph."""

from __future__ import annotations

from django.urls import path

from console.feature import ViewModule
from console.web.core.addresses import MACHINE

views = ViewModule("console.features.hot_states.views")

urlpatterns = [
    path(f"{MACHINE}hot-states/", views.hot_states_page, name="hot-states"),
    path(f"{MACHINE}hot-states/executions/", views.state_executions, name="hot-state"),
]
