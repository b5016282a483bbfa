"""URL of a state machine's logs."""

from __future__ import annotations

from django.urls import path

from console.feature import ViewModule
from console.web.core.addresses import MACHINE

views = ViewModule("console.features.logs.views")

urlpatterns = [path(f"{MACHINE}logs/", views.log_page, name="machine-logs")]
