"""URL of a state machine's logs."""

from __future__ import annotations

from django.urls import path

from console.features.logs import views
from console.web.core.addresses import MACHINE

urlpatterns = [path(f"{MACHINE}logs/", views.log_page, name="machine-logs")]
