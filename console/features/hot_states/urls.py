"""URLs of hot states."""

from __future__ import annotations

from django.urls import path

from console.features.hot_states import views
from console.web.core.addresses import MACHINE

urlpatterns = [
    path(f"{MACHINE}hot-states/", views.hot_states_page, name="hot-states"),
    path(f"{MACHINE}hot-states/executions/", views.state_executions, name="hot-state"),
]
