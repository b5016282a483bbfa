"""URLs of health checks, of the reset of a test server, and of a person's preferences."""

from __future__ import annotations

from django.urls import path

from console.feature import ViewModule

views = ViewModule("console.web.core.views")

urlpatterns = [
    path("healthz", views.liveness, name="healthz"),
    path("readyz", views.readiness, name="readyz"),
    path("reset", views.reset_server, name="reset"),
    path("preferences/", views.save_preferences, name="preferences"),
    path("preferences/columns/", views.choose_columns, name="columns"),
]
