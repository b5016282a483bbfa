"""The address of the page of operations."""

from __future__ import annotations

from django.urls import path

from console.web.operations import operations_views

urlpatterns = [path("operations/", operations_views.operations_page, name="operations")]
