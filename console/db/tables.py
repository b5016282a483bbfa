"""A migration operation that creates all tables of a squashed migration at once."""

from __future__ import annotations

from typing import Any

from django.db import migrations


class CreateModels(migrations.SeparateDatabaseAndState):
    """Create many models with their tables, indexes and constraints at once.

    Each ``CreateModel`` of a migration makes Django render every related model anew, which takes
    most of the time of a first start. This operation renders all of them once.
    """

    def __init__(
        self, models: list[migrations.CreateModel], sqlite_constraints: set[tuple[str, str]]
    ) -> None:
        """Take the models, and the foreign keys that have a constraint on SQLite only.

        The migrations that dropped constraints left those of SQLite in place: it cannot drop one
        without a copy of the table.
        """
        super().__init__(state_operations=models)
        self.models = models
        self.sqlite_constraints = sqlite_constraints

    def deconstruct(self) -> tuple[str, list[Any], dict[str, Any]]:
        """Return the constructor arguments, for Django's migration writer."""
        return (type(self).__name__, [self.models, self.sqlite_constraints], {})

    def state_forwards(self, app_label: str, state: Any) -> None:
        """Add the models; they are rendered together when their tables are created."""
        state.__dict__.pop("apps", None)
        super().state_forwards(app_label, state)

    def database_forwards(
        self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any
    ) -> None:
        """Create the tables."""
        del from_state
        models = [to_state.apps.get_model(app_label, model.name) for model in self.models]
        if schema_editor.connection.vendor == "sqlite":
            for name, field in self.sqlite_constraints:
                options = to_state.apps.get_model(app_label, name)._meta  # noqa: SLF001 - documented
                options.get_field(field).db_constraint = True
        for model in models:
            if self.allow_migrate_model(schema_editor.connection.alias, model):
                schema_editor.create_model(model)

    def database_backwards(
        self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any
    ) -> None:
        """Delete the tables."""
        del to_state
        for operation in reversed(self.models):
            model = from_state.apps.get_model(app_label, operation.name)
            if self.allow_migrate_model(schema_editor.connection.alias, model):
                schema_editor.delete_model(model)

    def describe(self) -> str:
        """Say what the operation does, for ``migrate --plan``."""
        return f"Create {len(self.models)} models"
