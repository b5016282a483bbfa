"""URL of the resilience report, which tests a definition's error handling."""

from __future__ import annotations

from django.urls import path

from console.feature import ViewModule
from console.web.core.addresses import MACHINE

views = ViewModule("console.features.resilience.views")

urlpatterns = [path(f"{MACHINE}resilience/", views.resilience_page, name="resilience")]
