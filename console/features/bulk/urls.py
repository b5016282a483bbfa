"""URLs of bulk actions: one action on many executions, and pausing a state machine."""

from __future__ import annotations

from django.urls import path

from console.feature import ViewModule

api_views = ViewModule("console.features.bulk.api_views")
views = ViewModule("console.features.bulk.views")

urlpatterns = [
    path("executions/bulk/", views.bulk_page, name="bulk"),
    path("api/machines/pause", api_views.pause, name="api-machine-pause"),
    path("api/machines/resume", api_views.resume, name="api-machine-resume"),
    path("executions/bulk/<number:number>/", views.job_page, name="bulk-job"),
]
