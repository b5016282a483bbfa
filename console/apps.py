"""Django's entry to this application."""

from __future__ import annotations

from django.apps import AppConfig
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

import engine


class ConsoleConfig(AppConfig):
    """The console: store, worker, AWS edge and pages."""

    name = "console"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Use the limits the operator chose, and register the checks for a deployment."""
        from console import checks  # noqa: F401 - importing them registers them

        profile = settings.STEPYARD_LIMITS
        if profile not in engine.LIMITS:
            known = ", ".join(engine.LIMITS)
            raise ImproperlyConfigured(f"STEPYARD_LIMITS: got {profile!r}, wanted one of {known}")
        engine.use_limits(profile)
