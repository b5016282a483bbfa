"""URLs of the package masking."""

from __future__ import annotations

from django.urls import path

from console.web.core.addresses import EXECUTION
from console.web.masking import views

urlpatterns = [
    path(f"{EXECUTION}reveal/", views.reveal_execution, name="reveal"),
    path("settings/", views.masking_page, name="project-settings"),
]
