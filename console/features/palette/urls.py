"""URLs of the palette."""

from __future__ import annotations

from django.urls import path

from console.features.palette import views

urlpatterns = [path("palette/", views.palette_page, name="palette")]
