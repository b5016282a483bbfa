"""URLs of the execution list and its saved views."""

from __future__ import annotations

from django.urls import path

from console.feature import ViewModule

list_views = ViewModule("console.web.search.list_views")

urlpatterns = [
    path("executions/", list_views.execution_list, name="executions"),
    path("executions/_new", list_views.execution_list_changes, name="executions-updates"),
    path("executions/views/", list_views.change_saved_view, name="views"),
    path(
        "executions/views/<number:number>/_count",
        list_views.saved_view_count,
        name="view-count",
    ),
]
