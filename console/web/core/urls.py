"""URLs of the package core."""

from __future__ import annotations

from django.urls import path

from console.web.core import health_views, preference_views, reset_views

urlpatterns = [
    path("healthz", health_views.liveness, name="healthz"),
    path("readyz", health_views.readiness, name="readyz"),
    path("reset", reset_views.reset_server, name="reset"),
    path("preferences/", preference_views.save_preferences, name="preferences"),
    path("preferences/columns/", preference_views.choose_columns, name="columns"),
]
