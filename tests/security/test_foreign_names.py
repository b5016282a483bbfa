"""Things of another project are absent also where a parameter, a form or a signed call names them.

As in ``test_leaks``: each question about ``quokka`` is asked again about ``wombat``, which does not
exist, and both answers must be the same. Here the address names a thing of one's own, or none, and
the query, the form or the body names the one of ``quokka``. Each request is rolled back, so that
both questions are asked of the same rows.
"""

from __future__ import annotations

import json
import random
import re
import secrets
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from django.db import connection, transaction
from django.test import Client

from console import access
from console.db import clock, project_settings
from console.db.audit import Actor
from console.features.named_inputs import store as named_inputs
from console.features.notifications.store import rules
from console.models import Execution, StateMachine
from console.store.machines import versions
from console.store.people import people
from console.store.tasks import activities
from console.web.core import forms, scope
from console.web.core.rights import ANYBODY, PAGES
from tests.console.store.helpers import one
from tests.security.test_leaks import (
    ACCOUNT,
    BY_ROLE,
    KEY,
    NUMBER,
    OPEN,
    OTHER_ACCOUNT,
    SECRET,
    TWIN,
    World,
    difference,
    filled,
    full,
    missing,
    rows,
    settled,
    world,
    written,
)
from tests.security.test_rights import HOST, ROUTES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["full", "world"]  # fixtures
pytestmark = pytest.mark.slow
OWN_MACHINE = f"arn:aws:states:us-east-1:{OTHER_ACCOUNT}:stateMachine:{TWIN}"
OWN_EXECUTION = f"arn:aws:states:us-east-1:{OTHER_ACCOUNT}:execution:{TWIN}:{TWIN}"
BY = Actor("owner", "", "")
_HASH = re.compile(
    r'name="drawn" value="\w+"|alarms-twin-\w{8}|"accountId": "\d{12}"|(?<=/twin/triggers/)\d+'
)
"""What differs between the answers: computed from names, drawn, or the number of one's new row."""
_ASIDE = re.compile(r'"(django_session|console_auditentry|console_browsersession)"')
"""Tables to which many requests write and that are nobody's, or only grow."""
OWN_KEY = "AKIAOWN2345672345672"


# -- one's own things, and questions that change nothing -------------------------------------------


@pytest.fixture
def furnished(full: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """Return the projects, where both have things called ``twin`` of most kinds; time stands."""
    for project in (full.secret, full.other):
        machine = StateMachine.objects.get(project=project, name=TWIN)
        version = versions.publish_version(machine)
        route = [{"stateMachineVersionArn": version.arn, "weight": 100}]
        versions.create_alias(project, TWIN, route)
        activities.create_activity(project, "us-east-1", TWIN)
        named_inputs.put_input(machine, TWIN, "{}", BY)
        rules.put_rule(project, "us-east-1", TWIN, pattern=json.dumps({"source": [project.name]}))
        target = {"Id": "1", "Arn": machine.arn, "RoleArn": machine.role_arn}
        rules.put_targets(project, "us-east-1", TWIN, [target])
    secret = StateMachine.objects.get(project=full.secret, name=SECRET)
    named_inputs.put_input(secret, SECRET, "{}", BY)
    of_twin = StateMachine.objects.get(project=full.secret, name=TWIN)
    named_inputs.put_input(of_twin, SECRET, json.dumps({SECRET: 1}), BY)
    key, _ = people.new_key(full.users["owner"], full.other, BY)
    type(key).objects.filter(pk=key.pk).update(key_id=OWN_KEY)
    moment = clock.now_ms()
    monkeypatch.setattr(clock, "now_ms", lambda: moment)
    random.seed("keys")
    monkeypatch.setattr(secrets, "choice", random.choice)
    monkeypatch.setattr(secrets, "randbelow", random.randrange)
    monkeypatch.setattr(secrets, "token_urlsafe", lambda size=32: random.randbytes(size).hex())
    return full


class Visitor:
    """A browser of one person, whose requests leave no rows behind."""

    def __init__(self, world: World, name: str) -> None:
        self._client = Client()
        self._client.force_login(world.users[name])
        self._session = self._client.cookies["stateyard_session"].value
        self._before = repr(rows())

    def ask(
        self, method: str, address: str, sent: Mapping[str, Any] | None = None, **headers: Any
    ) -> str:
        """Return the answer as ``written`` has it; fail if it changed anything of ``quokka``."""
        writes: list[str] = []

        def note(execute: Any, sql: str, *rest: Any) -> Any:
            if sql.startswith(("INSERT", "UPDATE", "DELETE")) and not _ASIDE.search(sql):
                writes.append(sql)
            return execute(sql, *rest)

        with transaction.atomic():
            random.seed("question")
            with connection.execute_wrapper(note):
                send = self._client.get if method == "GET" else self._client.post
                answer = send(address, dict(sent or {}), headers=headers)
                text = written(answer)
            if writes:
                assert repr(rows()) == self._before, (method, address, sent)
            transaction.set_rollback(True)
        self._client.cookies.clear()
        self._client.cookies["stateyard_session"] = self._session
        access._principals.clear()
        project_settings._remembered.clear()
        return text


def leaks(
    visitor: Visitor, method: str, address: str, sent: Mapping[str, Any] | None = None
) -> str:
    """Return where the answers about ``quokka`` and about nobody differ, "" if they do not."""
    theirs = visitor.ask(method, address, sent)
    none = visitor.ask(method, missing(address), missing(dict(sent or {})))
    return unlike(theirs, none)


def unlike(theirs: str, none: str) -> str:
    """Return where two answers differ, but for hashes of names."""
    if missing(theirs) == none:
        return ""
    return difference(_HASH.sub("", settled(theirs)), _HASH.sub("", settled(none)))


def own(route: str) -> str:
    """Return the address of a route for one's own things."""
    route = route.replace("<str:key>", OWN_KEY).replace("<str:project_name>", "other")
    return filled(route, TWIN).replace(str(NUMBER), "1")


# -- parameters of addresses -----------------------------------------------------------------------

_PLAIN = {"region", "unfold", "sort", "order", "page", "unsent", "next", "seen", "beats", "columns"}
_PLAIN |= {"began", "end", "range", "period", "statistic", "group", "timezone", "type", "template"}
"""Parameters that name no thing: how a page is shown, and where to go."""
_MEASURES = {
    *("at", "attempt", "attempts", "children", "clear", "all", "choose", "count", "drawn", "ended"),
    *("ending", "entered", "failure", "follow", "from", "iteration", "last", "listed_ms", "maps"),
    *("max", "min", "metric", "of", "only", "open", "paused", "redriven", "rows", "seen_rows"),
    *("seen_step", "seen_visit", "since", "span", "status", "tab", "to", "until", "visit"),
}
"""Parameters that choose within one's own things: asked once each."""
_CURSORS = {("after", "NAME")}
"""A name after which a list goes on: one's own things stand between the two names."""
_BESIDE: dict[str, dict[str, str]] = {
    "compare": {"a": OWN_EXECUTION},
    "hot-state": {"state": "State"},
    "chart-executions": {"metric": "ExecutionsStarted"},
    "bulk": {"action": "stop"},
    "test": {"text": json.dumps(one("A", Type="Succeed")), "state": "A"},
    "schedule-times": {"schedule": "rate(1 day)"},
    "notifications": {"create": "1"},
    "alarms": {"create": "1"},
    "schedules": {"create": "1"},
}
"""Address -> parameters without which it does not read further ones."""
_ALSO: dict[str, tuple[dict[str, str], ...]] = {
    "executions": (
        {"find": f"input.{SECRET}=1"},
        {"find": f"state:{SECRET}"},
        {"find": f"machine:{SECRET}"},
        {"find": f"by:{SECRET}"},
        {"find": f"execution:{SECRET}"},
        {"q": f"{SECRET}-"},
        {"view": f"{SECRET} {NUMBER}"},
        {"machine": SECRET, "status": "RUNNING"},
        {"machine": TWIN, "version": SECRET},
        {"region": "eu-west-1", "q": SECRET},
    ),
    "compare": (
        {"a": "EXECUTION", "b": "EXECUTION"},
        {"a": "EXECUTION", "b": "last-success"},
        {"b": "EXECUTION"},
        {"x": "NUMBERS"},
    ),
    "bulk": ({"action": "redrive", "x": "NUMBERS"}, {"action": "pause", "numbers": "NUMBERS"}),
    "palette": ({"q": f"Start {SECRET}"}, {"q": "arn:aws:states"}, {"q": f"machine:{SECRET}"}),
    "machines": ({"tag": f"{SECRET}={SECRET}"}, {"q": f"{SECRET}-work"}),
    "audit": ({"key": "KEY"}, {"what": "EXECUTION"}),
    "diff": ({"from": "1", "to": str(NUMBER)},),
    "tasks": ({"kind": f"activity:{SECRET}"},),
}


def read_parameters(world: World, patch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """Return address -> the parameters that it reads, as far as they may name a thing."""
    queries: list[Any] = []
    begin = scope.RecordingQuery.__init__

    def record(query: Any, *arguments: Any, **keywords: Any) -> None:
        begin(query, *arguments, **keywords)
        queries.append(query)

    visitor, read = Visitor(world, "owner"), {}
    with patch.context() as patched:
        patched.setattr(scope.RecordingQuery, "__init__", record)
        for name, route in ROUTES.items():
            if "GET" in PAGES[name] and name not in OPEN and "<path" not in route:
                queries.clear()
                address = own(route)
                visitor.ask("GET", f"{address}?{urlencode(_BESIDE.get(name, {}))}")
                asked = set().union(*(query.asked for query in queries))
                read[name] = sorted(asked - _PLAIN)
    return read


def named(world: World) -> dict[str, str]:
    """Return word of a question -> what it stands for: the ways to name things of ``quokka``."""
    execution = Execution.objects.get(arn=world.names["executionArn"])
    return {
        "EXECUTION": execution.arn,
        "MACHINE": world.names["stateMachineArn"],
        "VERSION": world.names["stateMachineVersionArn"],
        "ALIAS": world.names["stateMachineAliasArn"],
        "ACTIVITY": world.names["activityArn"],
        "RULE": world.names["rule"],
        "NUMBERS": str(NUMBER),
        "NUMBER": str(NUMBER),
        "KEY": KEY,
        "NAME": SECRET,
        "LABEL": f"{SECRET} {NUMBER}",
    }


@pytest.mark.postgres_too
def test_parameters_name_nothing_of_another_project(
    furnished: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each parameter that an address reads: an ARN, a name and a number of ``quokka``."""
    read, words = read_parameters(furnished, monkeypatch), named(furnished)
    assert len([name for name, parameters in read.items() if parameters]) > 40
    visitor, wrong = Visitor(furnished, "owner"), []
    for name, parameters in read.items():
        questions = [
            {**_BESIDE.get(name, {}), parameter: words[word]}
            for parameter in parameters
            for word in ("EXECUTION", "NAME", "NUMBER")
            if (word == "NAME" or parameter not in _MEASURES) and (parameter, word) not in _CURSORS
        ]
        questions += [
            {key: words.get(value, value) for key, value in question.items()}
            for question in _ALSO.get(name, ())
        ]
        for question in questions:
            address = f"{own(ROUTES[name])}?{urlencode(question)}"
            if where := leaks(visitor, "GET", address):
                wrong.append((name, question, where))
    assert wrong == []


# -- forms -----------------------------------------------------------------------------------------

_DEFINITION = json.dumps(one("A", Type="Succeed"))
_CALLING = json.dumps(
    one(
        "A",
        Type="Task",
        Resource="arn:aws:states:::states:startExecution.sync:2",
        Parameters={"StateMachineArn": "MACHINE", "Input": {}},
    )
)
_WORKING = json.dumps(one("A", Type="Task", Resource="ACTIVITY"))
_SETTINGS = "masks:\n- $.{0}\n"
_ACTS: dict[str, tuple[str, ...]] = {
    "activity": ("delete", "timeouts"),
    "breakpoints": ("add", "remove", "continue", "step", "answer", "skip", "answer-error", "fail"),
    "bulk-job": ("pause", "resume"),
    "columns": ("reset", "save"),
    "halted-lines": ("allow", "forbid"),
    "inputs": ("save", "rename", "delete"),
    "key": ("describe", "enable", "disable", "delete"),
    "machine-alarms": ("save", "metric", "delete", "notify"),
    "machine-settings": ("logging", "tracing", "role", "tag", "untag"),
    "next-starts": ("set", "remove"),
    "note": ("note", "assign", "unassign"),
    "remark": ("note", "assign", "unassign"),
    "reveal": ("show", "hide"),
    "rule-switch": ("enable", "disable"),
    "schedule-switch": ("enable", "disable"),
    "second-factor": ("on", "off", "codes"),
    "service-accounts": ("create", "change", "delete"),
    "task": ("approve", "ask-reject", "reject", "complete", "fail", "heartbeat", "reveal"),
    "tasks": ("approve", "ask-reject", "reject", "ask-many", "approve-many", "reject-many"),
    "versions": (*("restore", "publish", "delete-version", "create", "change", "delete-alias"),),
    "views": ("save", "delete"),
}
"""Address -> values of ``act`` of its forms."""
_USUAL: dict[str, str] = {
    "about": "executions",
    "account": "",
    "action": "stop",
    "actions": "all",
    "clock": "still",
    "comparison": "GreaterThanThreshold",
    "datapoints": "1",
    "definition": _DEFINITION,
    "first": "1",
    "group": "/twin",
    "hours": "1",
    "input": "{}",
    "kind": "failures",
    "level": "ALL",
    "machine": TWIN,
    "metric": "ExecutionsFailed",
    "minimum": "1",
    "missing": "missing",
    "mode": "",
    "name": "fresh",
    "new_name": "fresh",
    "number": "1",
    "period": "60",
    "periods": "1",
    "role": f"arn:aws:iam::{OTHER_ACCOUNT}:role/any",
    "schedule": "rate(1 day)",
    "state": "State",
    "statistic": "Sum",
    "status": "FAILED",
    "target": "https://example.org/hook",
    "text": _DEFINITION,
    "threshold": "1",
    "timezone": "UTC",
    "type": "STANDARD",
}
"""Field of a form -> a value with which the form gets as far as to what another field names."""
_OF_ADDRESS: dict[str, dict[str, str]] = {
    "own-target": {"name": "s3"},
    "denied-actions": {"name": "operator"},
    "members": {"role": "viewer"},
    "invite": {"role": "viewer"},
    "service-accounts": {"role": "viewer"},
    "settings-file": {"text": "masks: []"},
    "api-settings": {},
}
_NAMELESS = {
    *("act", "addresses", "alarm_state", "cause", "clock", "code", "comment", "comparison"),
    *("data", "datapoints", "days", "description", "discard", "drawn", "error", "hours", "level"),
    *("merge", "minimum", "missing", "mode", "note", "password", "period", "periods", "reason"),
    *("retries", "reveal", "statistic", "threshold", "timezone", "tracing", "unsent", "window"),
    *("after_completion", "bucket", "confirmed", "convert", "check", "default", "failures"),
    *("memory", "refill", "required", "send", "share", "show", "until", "unlimited", "value"),
    *("theme", "direction", "halt", "hits", "timeout", "secret", "secret_access_key"),
    *("access_key_id", "authorization_endpoint", "client_id", "header", "method", "username"),
    *("next", "over", "revision", "back", "page", "opened", "chosen", "pasted", "piece"),
}
"""Fields that name no thing: words, numbers, choices and secrets."""
_MORE: dict[str, tuple[dict[str, str], ...]] = {
    "new": (
        {"name": "fresh", "text": _CALLING, "role": _USUAL["role"], "type": "STANDARD"},
        {"name": "fresh", "text": _WORKING, "role": _USUAL["role"], "type": "STANDARD"},
        {"name": "fresh", "text": _DEFINITION, "role": f"arn:aws:iam::{ACCOUNT}:role/{SECRET}"},
    ),
    "edit": ({"text": _CALLING, "over": "1"}, {"text": _WORKING, "over": "1"}),
    "check": ({"text": _CALLING}, {"text": _WORKING}),
    "test": ({"text": _WORKING, "state": "A"}, {"origin": "EXECUTION", "state": SECRET}),
    "bulk": tuple(
        {"action": action, "numbers": numbers, "clock": "still"}
        for action in ("stop", "redrive", "pause", "resume")
        for numbers in ("NUMBERS", "NUMBERS-1")
    ),
    "tasks": tuple(
        {"act": act, "task": task, "tasks": task, "alike": "NUMBER"}
        for act in _ACTS["tasks"]
        for task in ("NUMBER", "NUMBER-1", "NUMBER-777001", "EXECUTION")
    ),
    "preferences": ({"project": SECRET},),
    "branch-delete": (
        {"project": SECRET, "branch": SECRET},
        {"project": "other", "branch": SECRET},
        {"project": "other", "branch": f"{SECRET}/{SECRET}"},
    ),
    "own-target-remove": ({"kind": "service", "name": SECRET},),
    "own-target-test": ({"kind": "service", "name": SECRET},),
    "keys": ({"member": SECRET, "actions": "all"}, {"machines": SECRET, "actions": "all"}),
    "start": (
        {"saved": SECRET, "input": '{"a": "•••••"}'},
        {"origin": SECRET, "input": "{}"},
        {"run": "VERSION", "input": "{}"},
        {"run": SECRET, "input": "{}"},
    ),
    "inputs": ({"act": "save", "name": "fresh", "origin": SECRET},),
    "settings-file": ({"text": f"masks: ['$.{SECRET}']"}, {"text": f"targets: {{{SECRET}: {{}}}}"}),
    "notifications": (
        {**_USUAL, "target": "MACHINE"},
        {**_USUAL, "pattern": json.dumps({"resources": ["MACHINE"]})},
        {**_USUAL, "target": "ACTIVITY"},
    ),
    "schedules": (
        {**_USUAL, "machine": "MACHINE", "target": "MACHINE"},
        {**_USUAL, "machine": SECRET, "schedule": "at(2999-01-01T00:00:00)"},
    ),
    "target-add": ({"target": "MACHINE"}, {"target": SECRET}),
    "import": ({"history": "{}", "machine": SECRET, "execution": SECRET},),
}
"""Address -> further forms, in which words of ``named`` stand for things of ``quokka``."""
_DIFFERING = {"members", "invite", "second-factor"}
"""Addresses whose answers differ: people have the same names in all projects; drawn secrets."""


def in_words(sent: Mapping[str, str], words: Mapping[str, str]) -> dict[str, str]:
    """Return a form with the things of ``quokka`` in place of the words for them."""
    filled_in = {}
    for field, value in sent.items():
        for word in ("EXECUTION", "MACHINE", "VERSION", "ACTIVITY", "NUMBERS", "NUMBER"):
            value = value.replace(word, words[word])  # noqa: PLW2901 - step by step
        filled_in[field] = value
    return filled_in


def read_fields(world: World, patch: pytest.MonkeyPatch) -> dict[tuple[str, str], list[str]]:
    """Return address and ``act`` -> the fields that its forms read, as far as they name a thing."""
    fields: set[str] = set()
    begin = forms.PageForm.__init__

    def record(form: Any, *arguments: Any, **keywords: Any) -> None:
        begin(form, *arguments, **keywords)
        fields.update(form.fields)

    visitor, read = Visitor(world, "owner"), {}
    with patch.context() as patched:
        patched.setattr(forms.PageForm, "__init__", record)
        for name in posted():
            for act in _ACTS.get(name, ("",)):
                fields.clear()
                usual = {**_USUAL, **_OF_ADDRESS.get(name, {}), "act": act}
                visitor.ask("POST", own(ROUTES[name]), usual)
                read[name, act] = sorted(fields - _NAMELESS)
    return read


def posted() -> list[str]:
    """Return the addresses that take forms of people who are signed in."""
    return [
        name
        for name in ROUTES
        if "POST" in PAGES[name] and ANYBODY not in PAGES[name]["POST"] and name not in OPEN
    ]


def forms_about(
    world: World, patch: pytest.MonkeyPatch
) -> Iterator[tuple[str, str, dict[str, str]]]:
    """Yield name, address and form of each way to name a thing of ``quokka`` in a form."""
    words = named(world)
    for (name, act), fields in read_fields(world, patch).items():
        usual = {**_USUAL, **_OF_ADDRESS.get(name, {}), "act": act}
        yield name, filled(ROUTES[name]), usual
        address = own(ROUTES[name])
        for field in fields:
            for word in ("EXECUTION", "NAME", "NUMBER"):
                yield name, address, usual | {field: words[word]}
    for name, questions in _MORE.items():
        for more in questions:
            yield name, own(ROUTES[name]), in_words(more, words)


@pytest.mark.postgres_too
def test_forms_name_nothing_of_another_project(
    furnished: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each field of each form: an ARN, a name and a number of ``quokka``; nothing of it changes."""
    visitor, wrong, names = Visitor(furnished, "owner"), [], set()
    for name, address, sent in forms_about(furnished, monkeypatch):
        names.add(name)
        where = leaks(visitor, "POST", address, sent)
        if where and name not in _DIFFERING:
            wrong.append((name, address, sent, where))
    assert wrong == []
    assert names == set(posted())


# -- signed calls of the server's own HTTP APIs ----------------------------------------------------

_HASHES = {SECRET: "0" * 64, f"{SECRET}-work": "0" * 64}
_BODIES: dict[str, tuple[dict[str, Any], ...]] = {
    "api-branches": ({"branch": SECRET}, {"branch": f"{SECRET}/{SECRET}"}),
    "api-branch-key": ({"branch": SECRET}, {"branch": f"../{SECRET}"}),
    "api-branch-failures": ({"branch": SECRET},),
    "api-branch-delete": ({"branch": SECRET},),
    "api-branch-machines": ({"machines": _HASHES}, {"machines": {"MACHINE": "0" * 64}}),
    "api-branch-deploy": ({"machines": [{"name": SECRET, "definition": _DEFINITION}]},),
    "api-inputs": (
        {"machine": "MACHINE", "name": SECRET, "input": "{}"},
        {"machine": SECRET, "name": SECRET, "input": "{}"},
    ),
    "api-settings": ({"masks": [f"$.{SECRET}"]},),
    "api-execution-pause": ({"executionArn": "EXECUTION"}, {"executionArn": SECRET}),
    "api-execution-resume": ({"executionArn": "EXECUTION"},),
    "api-execution-start": (
        {"machine": "MACHINE", "breakpoints": f'[{{"state": "{SECRET}"}}]'},
        {"machine": "VERSION"},
        {"machine": "ALIAS"},
        {"machine": SECRET},
    ),
    "api-faults": (
        {"stateMachineArn": "MACHINE", "faults": '{"faults": []}'},
        {"stateMachineArn": "VERSION", "faults": f'[{{"state": "{SECRET}", "error": "x"}}]'},
        {"stateMachineArn": "ALIAS", "faults": "{}"},
        {"stateMachineArn": SECRET, "faults": "{}"},
    ),
    "api-next-starts": (
        {"machine": "MACHINE", "breakpoints": f'[{{"state": "{SECRET}"}}]'},
        {"machine": "MACHINE", "faults": f'[{{"state": "{SECRET}"}}]'},
        {"machine": SECRET},
    ),
    "api-next-starts-remove": ({"machine": "MACHINE"}, {"machine": SECRET}),
    "api-machine-pause": ({"machine": "MACHINE"}, {"machine": SECRET}),
    "api-machine-resume": ({"machine": "MACHINE"},),
    "api-schedules-pause": ({},),
    "api-schedules-resume": ({},),
    "api-projects": ({"name": SECRET}, {"name": "fresh", "accountId": ACCOUNT}),
    "api-project-rename": ({"newName": "fresh"},),
    "api-project-archive": ({},),
    "api-project-unarchive": ({},),
    "api-project-delete": ({"confirm": SECRET},),
}
"""Address of an API -> bodies that name things of ``quokka``."""
_QUERIES: dict[str, tuple[dict[str, str], ...]] = {
    "api-branches": ({},),
    "api-executions-paused": ({}, {"execution": "EXECUTION"}, {"execution": SECRET}),
    "api-inputs": (
        {"machine": "MACHINE"},
        {"machine": SECRET},
        {"machine": "MACHINE", "name": SECRET},
        {"machine": TWIN, "name": SECRET},
    ),
    "api-next-starts": ({}, {"machine": "MACHINE"}, {"machine": SECRET}),
    "api-project": ({},),
    "api-projects": ({},),
    "api-schedules-paused": ({},),
    "api-settings": ({},),
}
"""Address of an API -> queries that name things of ``quokka``."""


def signed(key: str, method: str, address: str, body: str) -> str:
    """Return the answer to a call that is signed with a key; roll its changes back."""
    request = AWSRequest(method, f"http://{HOST}{address}", {"Host": HOST}, body.encode())
    credentials = Credentials(key, access.secret_for(key))
    SigV4Auth(credentials, "stateyard", "us-east-1").add_auth(request)
    headers = dict(request.headers.items())
    with transaction.atomic():
        random.seed("question")
        answer = Client().generic(
            *(method, address, body), content_type="application/json", headers=headers
        )
        text = written(answer)
        transaction.set_rollback(True)
    access._principals.clear()
    return text


def signed_calls(words: Mapping[str, str]) -> Iterator[tuple[str, str, str, str]]:
    """Yield name, method, address and body of each call of an API that names a thing."""
    for name, bodies in _BODIES.items():
        for body in bodies:
            text = json.dumps(body)
            for word in ("EXECUTION", "MACHINE", "VERSION", "ALIAS"):
                text = text.replace(word, words[word])
            yield name, "POST", filled(ROUTES[name]), text
    for name, queries in _QUERIES.items():
        for query in queries:
            sent = urlencode(in_words(query, words))
            yield name, "GET", f"{filled(ROUTES[name])}?{sent}".rstrip("?"), ""


@pytest.mark.parametrize("role", BY_ROLE)
def test_signed_calls_name_nothing_of_another_project(furnished: World, role: str) -> None:
    """Each API with a key of each role; the owner of ``quokka`` gets answers about its things."""
    key, own_key = furnished.key(role), furnished.key(SECRET)
    before, wrong, differing = repr(rows()), [], set()
    for name, method, address, body in signed_calls(named(furnished)):
        theirs = signed(key, method, address, body)
        none = signed(key, method, missing(address), missing(body))
        if where := unlike(theirs, none):
            wrong.append((name, method, address, body, where))
        if SECRET not in address + body and (SECRET in theirs or ACCOUNT in theirs):
            wrong.append((name, method, address, body, theirs))
        if unlike(
            signed(own_key, method, address, body),
            signed(own_key, method, missing(address), missing(body)),
        ):
            differing.add(name)
    assert wrong == []
    assert repr(rows()) == before
    assert differing >= {"api-inputs", "api-execution-pause", "api-machine-pause"}


def test_every_signed_address_is_asked() -> None:
    """A new API, or a new method, fails here until it has questions above."""
    methods = {
        (name, method) for name in ROUTES if name.startswith("api-") for method in PAGES[name]
    }
    asked = {(name, "POST") for name in _BODIES} | {(name, "GET") for name in _QUERIES}
    assert asked == methods
