"""Direct SQL reads and writes the same rows as the ORM."""

from __future__ import annotations

from typing import Any

import pytest
from django.forms.models import model_to_dict

from console.db import rows
from console.db.audit import NOBODY
from console.db.writer import write
from console.models import Execution, HistoryEvent, Project, RunRow, StateMachine
from console.store.executions.start import _new_execution
from tests.console.store.helpers import PASS, WAIT, create, drain, start


@pytest.mark.parametrize("model", [Execution, RunRow, StateMachine])
def test_a_row_is_read_as_the_orm_reads_it(project: Project, model: Any) -> None:
    """Every field has the same value (SQLite's 1 counts as true)."""
    drain(start(create(project, WAIT), {"a": "é"}))
    short, usual = rows.fetch_one(model, "1 = %s", [1]), model.objects.get()
    assert short == usual
    for field in model._meta.concrete_fields:
        value, other = getattr(short, field.attname), getattr(usual, field.attname)
        assert (value, bool(value)) == (other, bool(other)), field.attname
    assert rows.fetch_one(model, "1 = %s", [2]) is None


def test_a_new_execution_is_what_the_models_constructor_makes(project: Project) -> None:
    """Every attribute; no default is an object that two rows would share."""
    machine = create(project, PASS)
    short = _new_execution(machine, "a", "arn", "{}", "", NOBODY, "")
    values = {name: value for name, value in vars(short).items() if name != "_state"}
    usual = Execution(**values)
    blank = Execution()
    for field in Execution._meta.concrete_fields:
        name = field.attname
        assert getattr(short, name) == getattr(usual, name), name
        assert isinstance(getattr(blank, name), (str, int, float, type(None))), name
    assert (short._state.adding, short._state.db) == (usual._state.adding, usual._state.db)


def test_a_row_is_written_as_the_orm_writes_it(project: Project) -> None:
    """The key is known afterwards, and the row can be saved again."""
    execution = start(create(project, PASS))
    copy = Execution.objects.get()
    copy.pk, copy.arn, copy.output = None, "other", None
    write(lambda: rows.insert(copy))
    assert copy.pk > execution.pk
    stored, source = model_to_dict(copy), model_to_dict(execution)
    assert {name for name in stored if stored[name] != source[name]} == {"id", "arn"}
    copy.name = "changed"
    copy.save()
    assert Execution.objects.get(pk=copy.pk).name == "changed"


def test_many_rows_are_written_at_once(project: Project) -> None:
    """With keys of several fields: some in one statement, and those that are left."""
    execution = start(create(project, PASS))
    events = [
        HistoryEvent(execution_id=execution.pk, event_id=number, previous=1, at_ms=1, type="X")
        for number in range(2, 122)
    ]
    write(lambda: rows.insert_all(events[:20]))
    write(lambda: rows.insert_all(events[20:]))
    write(lambda: rows.insert_all([]))
    stored_events = HistoryEvent.objects.filter(type="X").order_by("event_id")
    assert list(stored_events.values_list("event_id", "state")) == [(n, "") for n in range(2, 122)]


def test_what_is_not_given_has_the_default_of_the_model(project: Project) -> None:
    """A row that is added by its attributes is the one the ORM would have made."""
    execution = start(create(project, PASS))
    RunRow.objects.all().delete()
    write(lambda: rows.insert_rows(RunRow, [{"execution_id": execution.pk, "snapshot": "s"}]))
    write(lambda: rows.insert_rows(RunRow, []))
    row, usual = RunRow.objects.get(), RunRow(execution_id=execution.pk, snapshot="s")
    assert model_to_dict(row) == model_to_dict(usual)
