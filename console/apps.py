"""Django's entry to this application."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.apps import AppConfig
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

import engine
from console import own_api

if TYPE_CHECKING:
    from console.store.pending import Pending


class ConsoleConfig(AppConfig):
    """The console: store, worker, AWS edge and pages."""

    name = "console"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Use the limits the operator chose, and let Tasks reach the operations of the API."""
        profile = settings.STEPYARD_LIMITS
        if profile not in engine.LIMITS:
            known = ", ".join(engine.LIMITS)
            raise ImproperlyConfigured(f"STEPYARD_LIMITS: got {profile!r}, wanted one of {known}")
        engine.use_limits(profile)
        own_api.connect(_answer)


def _answer(caller: own_api.Caller, action: str, params: dict[str, Any]) -> Pending[dict[str, Any]]:
    """Answer a Task's call; what it takes is imported by the first one."""
    from console.awsapi import in_process

    return in_process.answer(caller, action, params)
