"""The addresses of the room palette."""

from __future__ import annotations

from django.urls import path

from console.web.palette import views

urlpatterns = [path("palette/", views.palette_page, name="palette")]
