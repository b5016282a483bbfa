"""The addresses of the room bulk."""

from __future__ import annotations

from django.urls import path

from console.features.bulk import views

urlpatterns = [
    path("executions/bulk/", views.bulk_page, name="bulk"),
    path("executions/bulk/<number:number>/", views.job_page, name="bulk-job"),
]
