"""URLs of the package overview."""

from __future__ import annotations

from django.urls import path

from console.web.overview import views

urlpatterns = [
    path("", views.overview_page, name="overview"),
    path("connect/", views.connect_page, name="connect"),
    path("_overview", views.overview_changes, name="overview-updates"),
    path("arn/<path:arn>", views.redirect_arn, name="arn"),
]
