"""The addresses of named inputs."""

from __future__ import annotations

from django.urls import path

from console.features.named_inputs import api_views, views
from console.web.core.addresses import MACHINE

urlpatterns = [
    path(f"{MACHINE}inputs/", views.inputs_page, name="inputs"),
    path("api/inputs", api_views.inputs, name="api-inputs"),
]
