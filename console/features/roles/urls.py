"""URL of the page that compares a state machine's calls with its role's policies."""

from __future__ import annotations

from django.urls import path

from console.feature import ViewModule
from console.web.core.addresses import MACHINE

views = ViewModule("console.features.roles.views")

urlpatterns = [path(f"{MACHINE}role/", views.role_page, name="role")]
