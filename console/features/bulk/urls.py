"""The addresses of the feature bulk."""

from __future__ import annotations

from django.urls import path

from console.features.bulk import api_views, views

urlpatterns = [
    path("executions/bulk/", views.bulk_page, name="bulk"),
    path("api/machines/pause", api_views.pause, name="api-machine-pause"),
    path("api/machines/resume", api_views.resume, name="api-machine-resume"),
    path("executions/bulk/<number:number>/", views.job_page, name="bulk-job"),
]
