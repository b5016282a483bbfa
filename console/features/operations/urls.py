"""URL of the operations page: workers, availability, and the oldest waiting work."""

from __future__ import annotations

from django.urls import path

from console.feature import ViewModule

views = ViewModule("console.features.operations.views")

urlpatterns = [path("operations/", views.operations_page, name="operations")]
