"""URLs of approval links: the form that creates one, and the approver's page."""

from __future__ import annotations

from django.urls import path

from console.feature import ViewModule
from console.web.core.addresses import EXECUTION

link_views = ViewModule("console.features.approvals.link_views")
views = ViewModule("console.features.approvals.views")

urlpatterns = [
    path(f"{EXECUTION}tasks/<number:number>/link/", link_views.make_link, name="approval-link"),
    path("approval/<str:token>/", views.approval_page, name="approval"),
]
