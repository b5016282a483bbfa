"""URLs of the feature test_state."""

from __future__ import annotations

from django.urls import path

from console.features.test_state.web import views
from console.web.core.addresses import EXECUTION, MACHINE

urlpatterns = [
    path(f"{MACHINE}test/", views.test_state_page, name="test"),
    path(f"{EXECUTION}scenario.json", views.scenario_json, name="execution-scenario"),
]
