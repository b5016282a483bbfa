"""URLs to set a project's masks and to reveal the masked values of an execution."""

from __future__ import annotations

from django.urls import path

from console.feature import ViewModule
from console.web.core.addresses import EXECUTION

views = ViewModule("console.web.masking.views")

urlpatterns = [
    path(f"{EXECUTION}reveal/", views.reveal_execution, name="reveal"),
    path("settings/", views.masking_page, name="project-settings"),
]
