"""URL of the operations page."""

from __future__ import annotations

from django.urls import path

from console.web.operations import views

urlpatterns = [path("operations/", views.operations_page, name="operations")]
