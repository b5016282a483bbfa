"""URLs of saved views: save or delete one, and count its executions."""

from __future__ import annotations

from django.urls import path

from console.feature import ViewModule

views = ViewModule("console.features.saved_views.views")

urlpatterns = [
    path("executions/views/", views.change_saved_view, name="views"),
    path("executions/views/<number:number>/_count", views.saved_view_count, name="view-count"),
]
