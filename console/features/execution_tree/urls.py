"""Address of the execution tree."""

from __future__ import annotations

from django.urls import path

from console.feature import ViewModule
from console.web.core.addresses import EXECUTION

views = ViewModule("console.features.execution_tree.views")

urlpatterns = [path(f"{EXECUTION}tree/", views.family_page, name="family")]
