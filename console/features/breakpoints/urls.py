"""The addresses of the feature breakpoints."""

from __future__ import annotations

from django.urls import path

from console.features.breakpoints import views
from console.web.core.addresses import EXECUTION

urlpatterns = [path(f"{EXECUTION}breakpoints/", views.breakpoints_page, name="breakpoints")]
