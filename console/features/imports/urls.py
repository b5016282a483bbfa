"""Addresses of the import page."""

from __future__ import annotations

from django.urls import path

from console.feature import ViewModule

views = ViewModule("console.features.imports.views")

urlpatterns = [
    path("import/", views.import_page, name="import"),
    path("import/<number:number>/delete/", views.delete_import, name="import-delete"),
]
