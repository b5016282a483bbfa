"""URL of the comparison."""

from __future__ import annotations

from django.urls import path

from console.features.compare import views

urlpatterns = [path("compare/", views.compare_page, name="compare")]
