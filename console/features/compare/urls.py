"""URL of the page that compares two executions side by side."""

from __future__ import annotations

from django.urls import path

from console.feature import ViewModule

views = ViewModule("console.features.compare.views")

urlpatterns = [path("compare/", views.compare_page, name="compare")]
