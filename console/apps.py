"""The Django application ``console``: what happens when a process of the server has loaded Django.

It imports the tables of all features, tells the engine which AWS services and file formats are
supported (``InstalledPlatform``), and connects Tasks with this server's own API.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.apps import AppConfig
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.management import find_commands, get_commands
from django.db.backends.signals import connection_created

import engine
from console import features, own_api
from console.config.data_folder import database_files, make_private
from console.feature import chosen_features, missing_need

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper

    from engine import Resource


class InstalledPlatform:
    """The AWS operations that botocore knows, and the file formats that installed packages read."""

    def knows_action(self, service: str, action: str) -> bool:
        """Return whether a service of ``aws-sdk`` (``s3``) has an action (``getObject``)."""
        from console.integrations import names  # imported late: it takes botocore along

        return names.has_operation(service, action)

    def unsupported_fields(self, resource: Resource, template: Any) -> list[str]:
        """Return the field names in Parameters or Arguments that a Task's action does not have."""
        from console.integrations import parameters

        return parameters.unsupported_fields(resource, template)

    def wrong_values(self, resource: Resource, template: Any) -> list[str]:
        """Return the errors in the literal values of a Task's Parameters or Arguments."""
        from console.integrations import parameters

        return parameters.wrong_values(resource, template)

    def missing_reader(self, input_type: str) -> str:
        """Return why an ItemReader's InputType cannot be read; "" if it can."""
        if input_type != "PARQUET" or find_spec("pyarrow") is not None:
            return ""
        return (
            "PARQUET cannot be read here: the package 'pyarrow' is not installed "
            "(pip install pyarrow)"
        )

    def parameter_problem(self, resource: Resource, state: str, parameters: Any) -> str:
        """Return why the service would reject a Task's parameters; "" if it accepts them."""
        from console.integrations.mocks import mentions_own_state
        from console.integrations.parameters import parameter_problem

        if mentions_own_state(state):
            return ""
        return parameter_problem(resource, state, parameters)


class ConsoleConfig(AppConfig):
    """The Django application with the store, the worker, the API and the pages."""

    name = "console"
    default_auto_field = "django.db.models.BigAutoField"

    def import_models(self) -> None:
        """Import the models of all features, also disabled ones: their tables stay."""
        super().import_models()
        for name in features.NAMES:
            if (Path(self.path) / "features" / name / "models.py").is_file():
                import_module(f"{features.__name__}.{name}.models")

    def ready(self) -> None:
        """Set the payload limits, register checks, and connect Tasks with the API's operations.

        Raise ``ImproperlyConfigured`` for an unknown limit, and for a feature whose required
        feature is not enabled.
        """
        from console.management import checks  # noqa: F401 - importing them registers them
        from console.web.core import numbers  # noqa: F401 - the same for ``<number:…>`` in URLs

        profile = settings.STATEYARD_LIMITS
        if profile not in engine.LIMITS:
            names = ", ".join(engine.LIMITS)
            raise ImproperlyConfigured(f"STATEYARD_LIMITS: got {profile!r}, wanted one of {names}")
        if missing := missing_need():
            raise ImproperlyConfigured(missing)
        get_commands().update(_commands_of_features())
        engine.use_limits(profile)
        engine.use_platform(InstalledPlatform())
        connection_created.connect(_make_private)
        own_api.connect(_answer, _serves)


def _commands_of_features() -> dict[str, str]:
    """Return the features' commands of Django: name -> the package with ``management/commands``."""
    folder = Path(features.__path__[0])
    return {
        name: f"{features.__name__}.{feature.name}"
        for feature in chosen_features()
        for name in find_commands(str(folder / feature.name / "management"))
    }


def _make_private(connection: BaseDatabaseWrapper, **_: object) -> None:
    """Restrict the files of a SQLite database to their owner: they hold all payloads."""
    if connection.vendor == "sqlite":
        make_private(*database_files(Path(str(connection.settings_dict["NAME"]))))


def _answer(caller: own_api.Caller, action: str, params: dict[str, Any]) -> own_api.Begun:
    """Answer a Task's call; the first call imports the API."""
    from console.awsapi import in_process

    return in_process.answer(caller, action, params)


def _serves(service: str, action: str) -> bool:
    from console.awsapi import in_process

    return in_process.serves(service, action)
