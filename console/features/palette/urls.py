"""URL of the search page, which is the command palette without its dialog."""

from __future__ import annotations

from django.urls import path

from console.feature import ViewModule

views = ViewModule("console.features.palette.views")

urlpatterns = [path("palette/", views.palette_page, name="palette")]
