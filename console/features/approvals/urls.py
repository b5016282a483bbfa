"""The address that an approval link leads to."""

from __future__ import annotations

from django.urls import path

from console.features.approvals import views

urlpatterns = [path("approval/<str:token>/", views.approval_page, name="approval")]
