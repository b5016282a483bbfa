"""URLs of the execution list and of its polls."""

from __future__ import annotations

from django.urls import path

from console.feature import ViewModule

list_views = ViewModule("console.web.search.list_views")

urlpatterns = [
    path("executions/", list_views.execution_list, name="executions"),
    path("executions/_new", list_views.execution_list_changes, name="executions-updates"),
]
