"""URLs of the feature alarms."""

from __future__ import annotations

from django.urls import path

from console.features.alarms import views
from console.web.core.addresses import MACHINE

urlpatterns = [
    path("alarms/", views.alarm_list, name="alarms"),
    path("alarms/<number:number>/", views.alarm_page, name="alarm"),
    path(f"{MACHINE}alarms/", views.machine_alarms, name="machine-alarms"),
]
