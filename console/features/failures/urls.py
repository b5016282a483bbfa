"""The URL of the page of failures by kind."""

from __future__ import annotations

from django.urls import path

from console.feature import ViewModule

views = ViewModule("console.features.failures.views")

urlpatterns = [path("failures/", views.failures_page, name="failures")]
