"""Every page shows whatever is stored: moments, numbers and texts at and beyond their bounds."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin

import pytest
from django.apps import apps
from django.db import connection
from django.db.models import BigIntegerField, CharField, FloatField, IntegerField, TextField

from console.awsapi import services
from console.db import clock
from console.errors import ServiceError, ValidationException
from console.features.notifications import schedules
from console.models import Execution, HistoryEvent, RunRow
from console.recordings.printed import read_printed
from console.store.executions import imports
from console.web.core import formatting
from console.web.core.addresses import import_address
from tests.chaos.fuzz import addresses
from tests.console.awsapi.requests import ask, existing
from tests.console.awsapi.world import World
from tests.console.store.helpers import WORK, create, drain, start
from tests.console.web.helpers import CHAIN
from tests.features.imports.test_imports import DEFINITION, HISTORY
from tests.features.notifications.test_rules import dead_letter

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from django.test import Client

    from console.models import Project

MOMENTS = (clock.FIRST_MS, clock.LAST_MS, -1, clock.LAST_MS + 1, 2**63 - 1, -(2**63))
ALARM = {
    "AlarmName": "alarm",
    "MetricName": "ExecutionsStarted",
    "Namespace": "AWS/States",
    "Statistic": "Sum",
    "Period": 60,
    "EvaluationPeriods": 1,
    "Threshold": 1,
    "ComparisonOperator": "GreaterThanThreshold",
}
KEYS = {
    *("version", "next_event", "event_id", "previous", "number", "next_version", "task"),
    *("period_s", "periods", "datapoints"),
}
"""Columns by which rows are found, and the span of an alarm, which every entrance bounds."""
TEXTS = {
    *("description", "error", "cause", "reason", "last_error", "text", "note", "trace_header"),
    *("name_of_person", "created_by", "edited_by", "started_by", "actor", "problem", "worker"),
}
HOSTILE = ("", "\u202e" * 40, "9" * 64, "{" * 64, "<b>&amp;%s{{x}}", "\ufffd\U0010ffff")


@pytest.fixture
def patient(project: Project, django_user_model: Any) -> Client:
    """A client of an owner to whom a failure is an answer, with something of each kind to see."""
    from django.test import Client

    user = django_user_model.objects.create_user("ana", password="a long enough password")
    dead_letter(project)
    world = World(project, user)
    parameters = existing(world)
    drain(start(create(project, CHAIN, "chained"), name="run"))
    drain(start(create(project, WORK, "works"), name="run"))
    target = {"Arn": parameters["stateMachineArn"], "RoleArn": "arn:aws:iam::123456789012:role/r"}
    schedule = {
        "Name": "schedule",
        "ScheduleExpression": "rate(1 day)",
        "FlexibleTimeWindow": {"Mode": "OFF"},
        "Target": target,
    }
    ask(world, services.SCHEDULER, "CreateSchedule", schedule)
    dimension = {"Name": "StateMachineArn", "Value": parameters["stateMachineArn"]}
    ask(world, services.CLOUDWATCH, "PutMetricAlarm", ALARM | {"Dimensions": [dimension]})
    printed = read_printed(json.dumps(HISTORY), json.dumps(DEFINITION))
    imports.import_execution(project, printed)
    client = Client()
    client.force_login(user)
    client.raise_request_exception = False
    return client


def pages(project: Project) -> Iterator[str]:
    """Yield the address of every page of what there is."""
    executions = [
        (row.state_machine_arn.rpartition(":")[2], row.name)
        for row in Execution.objects.filter(project=project)
    ]
    executions += [
        (import_address(row), row.name) for row in Execution.imports.filter(project=project)
    ]
    names = {
        "field": "input",
        "rule_name": "rule",
        "group": "default",
        "schedule_name": "schedule",
        "alarm_name": "alarm",
        "activity_name": "work",
    }
    for route in sorted(addresses()):
        if (
            "token" in route
            or "secret" in route
            or route.startswith(("/static", "/logout", "/ready"))
        ):
            continue
        for machine, execution in executions if "machine_name" in route else [("", "")]:
            here = names | {"machine_name": machine, "execution_name": execution}
            yield re.sub(r"<(?:\w+:)?(\w+)>", lambda part, here=here: here.get(part[1], "1"), route)
            if "execution_name" not in route:
                break


def pages_that_read(client: Client, project: Project, table: str) -> list[str]:
    """Return the addresses of the pages that ask for rows of a table."""
    statements: list[str] = []

    def note(execute: Any, sql: str, *rest: Any) -> Any:
        statements.append(sql)
        return execute(sql, *rest)

    readers = []
    for address in pages(project):
        statements.clear()
        with connection.execute_wrapper(note):
            answer: Any = client.get(address)
            if answer.streaming:
                b"".join(answer.streaming_content)
        if any(table in statement for statement in statements):
            readers.append(address)
    return readers


def assert_pages_answer(
    client: Client, project: Project, stored: object, addresses: Iterable[str] = ()
) -> None:
    """Open pages: by default each."""
    failed = []
    for address in addresses or pages(project):
        answer: Any = client.get(address)
        shown = answer.content if not answer.streaming else b"".join(answer.streaming_content)
        if answer.status_code >= 500:
            failed.append((address, answer.status_code, shown[-300:]))
    assert not failed, stored


def columns(kind: type, named: Any) -> Iterator[tuple[Any, list[Any]]]:
    """Yield each model with its columns of a type whose name fits."""
    for model in apps.get_app_config("console").get_models():
        rows = getattr(model, "everything", model._base_manager)
        fields = [
            field
            for field in model._meta.concrete_fields
            if isinstance(field, kind)
            and not field.primary_key
            and not field.is_relation
            and not field.unique
            and named(field.name)
        ]
        if fields and model is not RunRow:
            yield rows, fields


@pytest.mark.slow
@pytest.mark.postgres_too
def test_every_page_shows_any_stored_moment(patient: Client, project: Project) -> None:
    """Also one that no entrance takes: it was stored by an earlier version."""
    for moment in MOMENTS:
        for rows, fields in columns(BigIntegerField, lambda name: name.endswith("_ms")):
            time_fields = [
                field for field in fields if field.name not in ("expires_ms", "disabled_ms")
            ]
            rows.update(**{field.name: moment for field in time_fields})
        assert_pages_answer(patient, project, moment)


@pytest.mark.slow
@pytest.mark.postgres_too
def test_every_page_shows_any_stored_number(patient: Client, project: Project) -> None:
    """Counts, limits, indexes and thresholds."""
    kinds: Any = (IntegerField, FloatField)
    for number in (0, -1, 2**31 - 1, -(2**31)):
        for rows, fields in columns(kinds, lambda name: not name.endswith("_ms")):
            number_fields = [field for field in fields if field.name not in KEYS]
            if number_fields:
                rows.update(**{field.name: number for field in number_fields})
        assert_pages_answer(patient, project, number)


@pytest.mark.slow
def test_every_page_shows_any_stored_text(patient: Client, project: Project) -> None:
    """Texts that people and programs write, none that this server writes for itself."""
    kinds: Any = (CharField, TextField)
    for value in HOSTILE:
        for rows, fields in columns(kinds, lambda name: name in TEXTS):
            rows.update(**{field.name: value[: field.max_length] for field in fields})
        assert_pages_answer(patient, project, value)


@pytest.mark.slow
def test_an_imported_history_may_have_any_value_in_its_details(
    patient: Client, project: Project
) -> None:
    """Somebody else's program wrote it."""
    told = list(HistoryEvent.objects.exclude(details=""))
    readers = pages_that_read(patient, project, HistoryEvent._meta.db_table)
    assert len(readers) > 20
    values: tuple[Any, ...] = (0, -1, 2**63, 10**30, 1e308, True, "x", None, [], {})
    for value in values:
        for row in told:
            details = json.loads(row.details)
            numbers = {key for key, detail in details.items() if isinstance(detail, int | float)}
            numbers |= {"timeoutInSeconds", "heartbeatInSeconds", "length", "index"}
            row.details = json.dumps(details | dict.fromkeys(numbers, value))
        HistoryEvent.objects.bulk_update(told, ["details"])
        assert_pages_answer(patient, project, value, readers)


@pytest.mark.parametrize(
    ("moment", "zone"),
    [("9999-12-31T23:59:59", "America/New_York"), ("0001-01-01T00:00:00", "Asia/Tokyo")],
)
def test_a_schedule_beyond_the_calendar_is_refused(
    world_of_schedules: World, moment: str, zone: str
) -> None:
    """One such moment made the page of all schedules an error."""
    with pytest.raises(schedules.ScheduleError, match="years 1 to 9999"):
        schedules.parse_schedule(f"at({moment})", zone, with_once=True)
    settings = {
        "Name": "late",
        "ScheduleExpression": f"at({moment})",
        "ScheduleExpressionTimezone": zone,
        "FlexibleTimeWindow": {"Mode": "OFF"},
        "Target": {
            "Arn": world_of_schedules.machine,
            "RoleArn": "arn:aws:iam::123456789012:role/r",
        },
    }
    with pytest.raises(ServiceError, match="years 1 to 9999"):
        ask(world_of_schedules, services.SCHEDULER, "CreateSchedule", settings)


@pytest.fixture
def world_of_schedules(project: Project, django_user_model: Any) -> World:
    """A project with a machine."""
    return World(project, django_user_model.objects.create_user("ana"))


@pytest.mark.parametrize(
    "timestamp", [253_402_300_800, -62_135_596_801, 1e30, "9999-12-31T23:59:59-08:00", float("nan")]
)
def test_a_history_beyond_the_calendar_is_refused(timestamp: Any) -> None:
    """The event is named."""
    events = json.loads(json.dumps(HISTORY))
    events["events"][1]["timestamp"] = timestamp
    with pytest.raises(ValidationException, match="this is no event"):
        read_printed(json.dumps(events), json.dumps(DEFINITION))


@pytest.mark.parametrize("moment", MOMENTS)
def test_no_formatter_raises(moment: int) -> None:
    """The nearest moment that a calendar has is shown, with four digits of the year."""
    for shown in (formatting.iso_text(moment), formatting.clock_text(moment, precise=True)):
        assert re.match(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d\.\d{3}", shown)


class _Forms(HTMLParser):
    """The forms of a page that send something: their addresses and fields."""

    def __init__(self) -> None:
        super().__init__()
        self.forms: list[tuple[str, dict[str, str]]] = []
        self._open = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take a form or a field of it in."""
        attributes = {name: value or "" for name, value in attrs}
        if tag == "form":
            self._open = attributes.get("method", "").lower() == "post"
            if self._open:
                self.forms.append((attributes.get("action", ""), {}))
        elif (
            self._open
            and tag in ("input", "textarea", "select", "button")
            and attributes.get("name")
        ):
            self.forms[-1][1].setdefault(attributes["name"], attributes.get("value", ""))

    def handle_endtag(self, tag: str) -> None:
        """Leave a form."""
        self._open = self._open and tag != "form"


@pytest.mark.slow
@pytest.mark.postgres_too
def test_a_nul_in_any_field_of_any_form_is_refused_or_taken(
    patient: Client, project: Project
) -> None:
    """PostgreSQL stores none: the form comes back, or the character is replaced."""
    seen: set[tuple[str, str]] = set()
    for address in pages(project):
        answer = patient.get(address)
        if answer.streaming or not answer.headers["Content-Type"].startswith("text/html"):
            continue
        parser = _Forms()
        parser.feed(answer.content.decode())
        for action, fields in parser.forms:
            target = urljoin(address, action)
            if target.startswith(("/logout", "/login", "/password")):
                continue
            for name in fields:
                kind = re.sub(r"\d+|run|chained|works|machine|mapped", "", target)
                if name == "csrfmiddlewaretoken" or (kind, name) in seen:
                    continue
                seen.add((kind, name))
                sent = fields | {name: f"{fields[name]}a\x00b"}
                assert patient.post(target, sent).status_code < 500, (target, name)
    assert len(seen) > 100
