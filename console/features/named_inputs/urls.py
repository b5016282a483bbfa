"""URLs of named inputs: inputs of a state machine saved under a name."""

from __future__ import annotations

from django.urls import path

from console.feature import ViewModule
from console.web.core.addresses import MACHINE

api_views = ViewModule("console.features.named_inputs.api_views")
views = ViewModule("console.features.named_inputs.views")

urlpatterns = [
    path(f"{MACHINE}inputs/", views.inputs_page, name="inputs"),
    path("api/inputs", api_views.inputs, name="api-inputs"),
]
