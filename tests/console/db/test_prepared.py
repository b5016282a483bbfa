"""Queries whose SQL is kept: they answer as Django's own, whatever they are asked with."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from django.db.models import Case, Q, Sum, Value, When

from console.db import prepared
from console.db.prepared import read_models, read_rows
from console.features.metrics.models import MetricMinute
from console.models import Execution, ServerFact
from tests.console.store.helpers import PASS, create, start

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.db.models import QuerySet

    from console.models import Project

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def facts() -> None:
    """Store three facts, and begin without kept statements."""
    prepared._statements.clear()
    for name in ("a", "b", "value 2100000001"):
        ServerFact.objects.create(name=name, value=f"of {name}")


def named(name: str) -> QuerySet[ServerFact, Any]:
    """Return the query of a fact."""
    return ServerFact.objects.filter(name=name).values_list("value")


@pytest.mark.slow
def test_a_kept_statement_is_asked_with_other_values() -> None:
    """Each time with the values of that time: what was asked first is no part of it."""
    for name in ("b", "a", "value 2100000001", "nobody"):
        assert read_rows("facts", named, name) == list(named(name))
    assert len(prepared._statements) == 1


def test_what_is_in_the_key_is_a_statement_of_its_own() -> None:
    """What a query depends on besides its values is named in the key."""

    def first(most: int) -> list[tuple[Any, ...]]:
        rows = ServerFact.objects.order_by("name").values_list("name")
        return read_rows(("first", most), lambda: rows[:most])

    assert [first(1), first(2), first(1)] == [[("a",)], [("a",), ("b",)], [("a",)]]


def store_minutes(project: Project, *minutes: int) -> None:
    """Store the sum of a metric of some minutes."""
    sums = {"count": 2, "total": 3, "least": 1, "most": 2, "spread": "{}"}
    about = {"region": "r", "metric": "m", "resource": "", "also": ""}
    for minute in minutes:
        MetricMinute.objects.create(project=project, minute_ms=minute, **about, **sums)


def test_a_value_that_stands_in_two_parts_is_bound_in_both(project: Project) -> None:
    """As in a union, in which each part has its own parameters; in the order of the SQL."""
    store_minutes(project, 1, 2, 3, 4)

    def both(minutes: Sequence[int], since: int) -> QuerySet[MetricMinute, Any]:
        rows = MetricMinute.objects.filter(minute_ms__in=minutes)
        later, sooner = (
            rows.filter(part).annotate(part=Value(at)).values_list("part", "minute_ms")
            for at, part in enumerate((Q(minute_ms__gte=since), Q(minute_ms__lt=since)))
        )
        return later.union(sooner, all=True)

    assert sorted(read_rows("both", both, (1, 2, 3), 3)) == [(0, 3), (1, 1), (1, 2)]
    assert sorted(read_rows("both", both, (4, 2), 2)) == [(0, 2), (0, 4)]
    assert sorted(read_rows("both", both, (4, 3, 2, 1), 5)) == [(1, 1), (1, 2), (1, 3), (1, 4)]
    shapes = {name[2][0] for name in prepared._statements}
    assert shapes == {4, 2}  # the last member is repeated: few lengths, few statements


def test_values_come_as_django_makes_them(project: Project) -> None:
    """A sum of whole numbers is a whole number on each database."""
    store_minutes(project, 1, 2)

    def sums(owner: int) -> QuerySet[MetricMinute, Any]:
        rows = MetricMinute.objects.filter(project=owner).order_by()
        return rows.values_list("metric").annotate(n=Sum("count"), of=Sum("total"))

    (row,) = read_rows("sums", sums, project.pk)
    (expected,) = sums(project.pk)
    assert [(type(each), each) for each in row] == [(type(each), each) for each in expected]


def test_a_value_that_the_sql_changes_is_refused() -> None:
    """The statement would have the first value in it for ever."""

    def holding(text: str) -> QuerySet[ServerFact, Any]:
        return ServerFact.objects.filter(name__contains=text).values_list("name")

    with pytest.raises(ValueError, match="does not contain every value unchanged"):
        read_rows("holding", holding, "a")


def test_a_value_that_the_sql_changes_once_is_refused(project: Project) -> None:
    """Also where the same value stands elsewhere as it is."""
    store_minutes(project, 1, 2, 3)

    def around(since: int) -> QuerySet[MetricMinute, Any]:
        rows = MetricMinute.objects.filter(minute_ms__range=(since - 1, since))
        return rows.values_list("minute_ms")

    with pytest.raises(ValueError, match="does not contain every value unchanged"):
        read_rows("around", around, 2)


def test_a_query_that_cannot_have_rows_returns_none() -> None:
    """Django composes no SQL for it."""
    assert read_rows("none", lambda name: named(name).none(), "a") == []
    assert read_rows("none", named, "a") == [("of a",)]


def test_an_in_of_nothing_returns_no_rows() -> None:
    """As Django answers it; where the query can have rows nevertheless, they are returned."""

    def among(names: Sequence[str]) -> QuerySet[ServerFact, Any]:
        return ServerFact.objects.filter(name__in=names).order_by("name").values_list("name")

    def besides(names: Sequence[str]) -> QuerySet[ServerFact, Any]:
        rows = ServerFact.objects.filter(Q(name="a") | Q(name__in=names))
        return rows.order_by("name").values_list("name")

    assert read_rows("among", among, ()) == []
    assert read_rows("among", among, ("b",)) == [("b",)]
    for names in ((), ("b",), ()):
        assert read_rows("besides", besides, names) == list(besides(names))


def test_the_statements_that_were_asked_last_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is asked again and again stays, whatever else is asked in between."""
    monkeypatch.setattr(prepared, "MOST_STATEMENTS", 3)
    composed = []

    def often(name: str) -> QuerySet[ServerFact, Any]:
        composed.append(name)
        return named(name)

    for number in range(10):
        assert read_rows("often", often, "b") == [("of b",)]
        assert read_rows(("facts", number), named, "a") == [("of a",)]
        assert len(prepared._statements) <= 3
    assert len(composed) == 2  # with either set of placeholders, once


def test_the_same_key_of_two_functions_is_two_statements() -> None:
    """Also where one of them is called with an argument that is part of the key."""

    def valued(name: str) -> QuerySet[ServerFact, Any]:
        return ServerFact.objects.filter(value=name).values_list("name")

    assert read_rows("fact", named, "a") == [("of a",)]
    assert read_rows("fact", partial(valued), "of a") == [("a",)]
    assert read_rows("fact", partial(valued), "of b") == [("b",)]
    assert len(prepared._statements) == 2


def executions_of(project: int, name: str) -> QuerySet[Execution]:
    """Return the query of executions with machine and note, and whether they run."""
    beside = Execution.objects.select_related("state_machine__definition", "note").defer("input")
    running = Case(When(status="RUNNING", then=Value(1)), default=Value(0))
    return beside.filter(project=project, name=name).annotate(running=running)


def test_models_are_read_as_django_reads_them(
    project: Project, django_assert_num_queries: Any
) -> None:
    """With their related models, those that there are not, annotations and what is deferred."""
    machine = create(project, PASS)
    for name in ("a", "b"):
        start(machine, name=name)
    for name in ("b", "a", "b"):
        with django_assert_num_queries(1):
            [read] = read_models("models", executions_of, project.pk, name)
            assert read.state_machine is not None
            assert read.state_machine.definition.text == machine.definition.text
            assert not hasattr(read, "note")
        [django] = executions_of(project.pk, name)
        fields = {name: value for name, value in vars(django).items() if name != "_state"}
        assert {each: getattr(read, each) for each in fields} == fields
        assert read.get_deferred_fields() == django.get_deferred_fields() == {"input"}
        assert read == django
    assert len(prepared._statements) == 1
    assert read_models("models", executions_of, project.pk, "nobody") == []


def test_columns_are_read_around_an_annotation() -> None:
    """In the order of the query; nothing is made of them."""

    def around(name: str) -> QuerySet[ServerFact, Any]:
        rows = ServerFact.objects.filter(name=name).annotate(seven=Value(7))
        return rows.values_list("name", "seven", "value")

    assert read_rows("around", around, "a") == list(around("a")) == [("a", 7, "of a")]


def test_models_are_read_of_queries_of_models_only(project: Project) -> None:
    """Columns make no model, whether they are of one, of none, or of no row."""

    def counted(owner: int) -> QuerySet[MetricMinute, Any]:
        rows = MetricMinute.objects.filter(project=owner).order_by()
        return rows.annotate(seven=Value(7)).values_list("seven")

    for build in (named, lambda name: named(name).none()):
        with pytest.raises(TypeError, match="has no model instances"):
            read_models("columns", build, "a")
    with pytest.raises(TypeError, match="has no model instances"):
        read_models("columns", counted, project.pk)
    assert read_rows("columns", named, "a") == [("of a",)]  # the same key, and no models


def test_a_list_of_names_stands_in_an_in() -> None:
    """As numbers do: padded, so that there are few statements, and bound anew."""

    def several(names: Sequence[str]) -> QuerySet[ServerFact, Any]:
        return ServerFact.objects.filter(name__in=names).order_by("name").values_list("name")

    for names in (("a", "b", "nobody"), ("b", "b", "b"), ("value 2100000001", "a", "b")):
        assert read_rows("several", several, names) == list(several(names))
    assert len(prepared._statements) == 1
