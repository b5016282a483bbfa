"""A row in every table for each of two projects, and the contents of a database."""

from __future__ import annotations

import json
from itertools import count
from typing import Any

from django.apps import apps
from django.db import connection, models

from console.models import Execution, MapRun, Project, Tag

_SERVER = {
    *("AccountMail", "BrowserSession", "LoginAttempts", "LoginLink", "Price"),
    *("ReadinessMinute", "ServerFact", "Worker"),
    *("AuditChain", "AuditSeal", "AuditStream"),
    *("FollowedPerson", "ProviderSession", "SpentLogoutToken"),
}
"""Tables of the server and of people, which belong to no project."""
_numbers = count(1_000)


class RowsOfProject:
    """Rows of all tables that belong to a project, by their models."""

    def __init__(self, project: Project, user: Any) -> None:
        """Make them; ``user``: whoever they are of."""
        self._project, self._rows = project, {Project: project, type(user): user}
        for model in apps.get_app_config("console").get_models():
            if model.__name__ not in _SERVER:
                self._row(model)
        execution, map_run = self._rows[Execution], self._rows[MapRun]
        Execution.stored.filter(pk=execution.pk).update(map_run=map_run)

    def _row(self, model: Any) -> Any:
        """Return the row of a model; make it, and the rows that it refers to."""
        if model not in self._rows:
            values = {}
            for field in model._meta.concrete_fields:
                if isinstance(field, models.ForeignKey):
                    if field.name != "map_run" or model is not Execution:
                        values[field.name] = self._row(field.related_model)
                elif not isinstance(field, (models.CompositePrimaryKey, models.AutoField)):
                    values[field.name] = self._value(model, field)
            self._rows[model] = models.QuerySet(model).create(**values)
        return self._rows[model]

    def _value(self, model: Any, field: Any) -> Any:
        number = next(_numbers)
        if model is Tag and field.name == "arn":
            account = self._project.account_id
            return f"arn:aws:states:us-east-1:{account}:stateMachine:{number}"
        if field.name == "next_starts":
            return self._next_starts(model, number)
        if field.choices:
            return field.choices[0][0]
        if isinstance(field, models.CharField):
            return f"{self._project.name} {number}"[-field.max_length :]
        if isinstance(field, models.TextField):
            return f'{{"{self._project.name}": {number}}}'
        if isinstance(field, models.BinaryField):
            return self._project.name.encode()
        return True if isinstance(field, models.BooleanField) else number

    def _next_starts(self, model: Any, number: int) -> str:
        name = self._project.name
        values: dict[str, Any] = {"set_by": name, "set_ms": number, "starts": 2}
        if model is Execution:
            values |= {"number": 1, "breakpoints": [name]}
        else:
            values |= {"until_ms": 2**50, "breakpoints": "[]", "faults": {}}
        return json.dumps(values)


def content() -> dict[str, list[tuple[Any, ...]]]:
    """Return the rows of every table of the database, read without Django's models."""
    rows = {}
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f"SELECT * FROM {connection.ops.quote_name(table)}")
            rows[table] = sorted(cursor.fetchall(), key=repr)
    return rows
