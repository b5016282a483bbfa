"""URLs of tasks that wait for an answer, and of activities."""

from __future__ import annotations

from django.urls import path

from console.feature import ViewModule
from console.web.core.addresses import EXECUTION

activity_views = ViewModule("console.features.tasks.activity_views")
views = ViewModule("console.features.tasks.views")

urlpatterns = [
    path(f"{EXECUTION}tasks/<number:number>/", views.task_page, name="task"),
    path("tasks/_changes", views.task_list_changes, name="tasks-updates"),
    path("tasks/", views.task_list, name="tasks"),
    path("activities/", activity_views.activity_list, name="activities"),
    path("activities/<str:activity_name>/", activity_views.activity_page, name="activity"),
]
