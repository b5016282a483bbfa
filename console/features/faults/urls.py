"""URLs of faults: errors and latency injected into an execution."""

from __future__ import annotations

from django.urls import path

from console.feature import ViewModule
from console.web.core.addresses import EXECUTION

api_views = ViewModule("console.features.faults.api_views")
views = ViewModule("console.features.faults.views")

urlpatterns = [
    path(f"{EXECUTION}faults/", views.faults_page, name="faults"),
    path("api/faults", api_views.start_faulty, name="api-faults"),
]
