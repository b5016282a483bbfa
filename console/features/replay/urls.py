"""Address of the replay form."""

from __future__ import annotations

from django.urls import path

from console.feature import ViewModule
from console.web.core.addresses import EXECUTION

views = ViewModule("console.features.replay.views")

urlpatterns = [path(f"{EXECUTION}replay/", views.replay_execution, name="replay")]
