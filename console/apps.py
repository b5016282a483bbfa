"""Django's entry to this application."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.apps import AppConfig
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db.backends.signals import connection_created

import engine
from console import features, own_api
from console.config import former_name
from console.config.data_folder import database_files, make_private
from console.config.installed_platform import InstalledPlatform
from console.feature import missing_need

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper


class ConsoleConfig(AppConfig):
    """The console: store, worker, AWS edge and pages."""

    name = "console"
    default_auto_field = "django.db.models.BigAutoField"

    def import_models(self) -> None:
        """Know the tables of all features, also of those that are left out: they stay."""
        super().import_models()
        for name in features.NAMES:
            if (Path(self.path) / "features" / name / "models.py").is_file():
                import_module(f"{features.__name__}.{name}.models")

    def ready(self) -> None:
        """Use the chosen limits, register checks, and let Tasks reach the API's operations.

        Raise ``ImproperlyConfigured`` for an unknown limit and for features that lack another one.
        """
        from console.config import checks  # noqa: F401 - importing them registers them

        profile = settings.STATEYARD_LIMITS
        if profile not in engine.LIMITS:
            known = ", ".join(engine.LIMITS)
            raise ImproperlyConfigured(f"STATEYARD_LIMITS: got {profile!r}, wanted one of {known}")
        if missing := missing_need():
            raise ImproperlyConfigured(missing)
        engine.use_limits(profile)
        engine.use_platform(InstalledPlatform())
        connection_created.connect(_make_private)
        own_api.connect(_answer, _serves)
        former_name.report_uses()


def _make_private(connection: BaseDatabaseWrapper, **_: object) -> None:
    """Let nobody else read an SQLite database, which holds all that executions do."""
    if connection.vendor == "sqlite":
        make_private(*database_files(Path(str(connection.settings_dict["NAME"]))))


def _answer(caller: own_api.Caller, action: str, params: dict[str, Any]) -> own_api.Begun:
    """Answer a Task's call; what it takes is imported by the first one."""
    from console.awsapi import in_process

    return in_process.answer(caller, action, params)


def _serves(service: str, action: str) -> bool:
    from console.awsapi import in_process

    return in_process.serves(service, action)
