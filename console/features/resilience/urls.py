"""The address of the resilience report."""

from __future__ import annotations

from django.urls import path

from console.features.resilience import views
from console.web.core.addresses import MACHINE

urlpatterns = [path(f"{MACHINE}resilience/", views.resilience_page, name="resilience")]
