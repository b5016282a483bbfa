"""The addresses of the room editor."""

from __future__ import annotations

from django.urls import path

from console.web.core.addresses import MACHINE
from console.web.editor import views

urlpatterns = [
    path("machines/new/", views.new_machine, name="new"),
    path("machines/new/_check", views.check_definition, name="check"),
    path(f"{MACHINE}edit/", views.edit_machine, name="edit"),
]
