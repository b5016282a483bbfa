"""The addresses of the server's audit."""

from __future__ import annotations

from django.urls import path

from console.features.audit import views

urlpatterns = [
    path("server-audit/", views.server_audit_page, name="server-audit"),
    path("server-audit.csv", views.server_audit_csv, name="server-audit-csv"),
]
