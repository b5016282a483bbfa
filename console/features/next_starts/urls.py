"""URLs of breakpoints and faults for the next starts of a state machine."""

from __future__ import annotations

from django.urls import path

from console.feature import ViewModule
from console.web.core.addresses import MACHINE

api_views = ViewModule("console.features.next_starts.api_views")
views = ViewModule("console.features.next_starts.views")

urlpatterns = [
    path(f"{MACHINE}next-starts/", views.next_starts_page, name="next-starts"),
    path("api/next-starts", api_views.next_starts_view, name="api-next-starts"),
    path("api/next-starts/remove", api_views.remove, name="api-next-starts-remove"),
]
