"""URLs of the audit of a project and of the server: changes by people and programs."""

from __future__ import annotations

from django.urls import path

from console.feature import ViewModule

views = ViewModule("console.features.audit.views")

urlpatterns = [
    path("audit/", views.audit_page, name="audit"),
    path("audit.csv", views.audit_csv, name="audit-csv"),
    path("server-audit/", views.server_audit_page, name="server-audit"),
    path("server-audit.csv", views.server_audit_csv, name="server-audit-csv"),
]
