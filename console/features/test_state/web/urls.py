"""URLs of TestState: the page that runs one state, and an execution's scenario file."""

from __future__ import annotations

from django.urls import path

from console.feature import ViewModule
from console.web.core.addresses import EXECUTION, MACHINE

views = ViewModule("console.features.test_state.web.views")

urlpatterns = [
    path(f"{MACHINE}test/", views.test_state_page, name="test"),
    path(f"{EXECUTION}scenario.json", views.scenario_json, name="execution-scenario"),
]
