"""URLs of alarms: the list, one alarm, and the alarms of a state machine."""

from __future__ import annotations

from django.urls import path

from console.feature import ViewModule
from console.web.core.addresses import MACHINE

views = ViewModule("console.features.alarms.views")

urlpatterns = [
    path("alarms/", views.alarm_list, name="alarms"),
    path("alarms/<number:number>/", views.alarm_page, name="alarm"),
    path(f"{MACHINE}alarms/", views.machine_alarms, name="machine-alarms"),
]
