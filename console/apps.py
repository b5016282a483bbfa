"""Django's entry to this application."""

from __future__ import annotations

from django.apps import AppConfig


class ConsoleConfig(AppConfig):
    """The console: store, worker, AWS edge and pages."""

    name = "console"
    default_auto_field = "django.db.models.BigAutoField"
