"""URLs of the overview, of the page *Connect*, and of addresses by ARN."""

from __future__ import annotations

from django.urls import path

from console.feature import ViewModule

views = ViewModule("console.web.overview.views")

urlpatterns = [
    path("", views.overview_page, name="overview"),
    path("connect/", views.connect_page, name="connect"),
    path("_overview", views.overview_changes, name="overview-updates"),
    path("arn/<path:arn>", views.redirect_arn, name="arn"),
]
