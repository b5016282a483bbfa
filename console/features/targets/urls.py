"""URLs of targets: those of the project, and the calls of a state machine."""

from __future__ import annotations

from django.urls import path

from console.feature import ViewModule
from console.web.core.addresses import MACHINE

views = ViewModule("console.features.targets.views")

urlpatterns = [
    path(f"{MACHINE}calls/", views.calls_page, name="calls"),
    path("targets/", views.target_list, name="targets"),
]
