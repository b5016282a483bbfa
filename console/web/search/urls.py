"""URLs of the package search."""

from __future__ import annotations

from django.urls import path

from console.web.search import failure_views, list_views, saved_list_views

urlpatterns = [
    path("executions/", list_views.execution_list, name="executions"),
    path("executions/_new", list_views.execution_list_changes, name="executions-updates"),
    path("executions/views/", saved_list_views.change_saved_view, name="views"),
    path(
        "executions/views/<number:number>/_count",
        saved_list_views.saved_view_count,
        name="view-count",
    ),
    path("failures/", failure_views.failures_page, name="failures"),
]
