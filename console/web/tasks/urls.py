"""URLs of tasks that wait for an answer, and of activities."""

from __future__ import annotations

from django.urls import path

from console.feature import ViewModule
from console.web.core.addresses import EXECUTION

activity_views = ViewModule("console.web.tasks.activity_views")
task_views = ViewModule("console.web.tasks.task_views")

urlpatterns = [
    path(f"{EXECUTION}tasks/<number:number>/", task_views.task_page, name="task"),
    path("tasks/_changes", task_views.task_list_changes, name="tasks-updates"),
    path("tasks/", task_views.task_list, name="tasks"),
    path("activities/", activity_views.activity_list, name="activities"),
    path("activities/<str:activity_name>/", activity_views.activity_page, name="activity"),
]
