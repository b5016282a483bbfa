"""URLs of the versions of a state machine, and of the diff of two definitions."""

from __future__ import annotations

from django.urls import path

from console.feature import ViewModule
from console.web.core.addresses import MACHINE

views = ViewModule("console.features.versions.views")

urlpatterns = [
    path(f"{MACHINE}versions/", views.versions_page, name="versions"),
    path(f"{MACHINE}diff/", views.definition_diff, name="diff"),
]
