"""URLs of the package tasks."""

from __future__ import annotations

from django.urls import path

from console.web.core.addresses import EXECUTION
from console.web.tasks import activity_views, task_views

urlpatterns = [
    path(f"{EXECUTION}tasks/<number:number>/", task_views.task_page, name="task"),
    path("tasks/_changes", task_views.task_list_changes, name="tasks-updates"),
    path("tasks/", task_views.task_list, name="tasks"),
    path("activities/", activity_views.activity_list, name="activities"),
    path("activities/<str:activity_name>/", activity_views.activity_page, name="activity"),
]
