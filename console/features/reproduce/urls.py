"""URL of the page that runs an imported execution again with its recorded answers."""

from __future__ import annotations

from django.urls import path

from console.feature import ViewModule
from console.web.core.addresses import EXECUTION

views = ViewModule("console.features.reproduce.views")

urlpatterns = [path(f"{EXECUTION}reproduce/", views.reproduce_page, name="reproduce")]
