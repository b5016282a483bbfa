"""The addresses of the feature faults."""

from __future__ import annotations

from django.urls import path

from console.features.faults import api_views, views
from console.web.core.addresses import EXECUTION

urlpatterns = [
    path(f"{EXECUTION}faults/", views.faults_page, name="faults"),
    path("api/faults", api_views.start_faulty, name="api-faults"),
]
