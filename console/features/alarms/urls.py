"""The addresses of the room alarms."""

from __future__ import annotations

from django.urls import path

from console.features.alarms import alarm_views
from console.web.core.addresses import MACHINE

urlpatterns = [
    path("alarms/", alarm_views.alarm_list, name="alarms"),
    path("alarms/<number:number>/", alarm_views.alarm_page, name="alarm"),
    path(f"{MACHINE}alarms/", alarm_views.machine_alarms, name="machine-alarms"),
]
