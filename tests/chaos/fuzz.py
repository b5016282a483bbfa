"""Seeded API calls and page requests made of existing names, extreme values and nonsense.

Each request depends on the seed and its own number alone, so that ``--seed`` and the number in a
violation make it again. No answer may be a 5xx, an API error in another shape than AWS's, or late.
"""

from __future__ import annotations

import json
import os
import random
import re
import secrets
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

import httpx
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from tests.acceptance.server import ROOT
from tests.chaos.load import Report
from tests.chaos.shapes import ACTIVITY, SHAPES
from tests.chaos.stage import Size, begin, close
from tests.chaos.team_server import machine_arn
from tests.extremes import NUMBERS, TEXTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from botocore.model import Shape

    from tests.chaos.team_server import TeamServer
    from tests.postgres import Postgres

_LATE_S = 30.0
_THREADS = 4
_GROUP = "/aws/vendedlogs/states/fuzz"
_ODD = (
    *TEXTS,
    *("\x00", "\ud7ff\ufffd", "é" * 300, "<script>", "%00", "../../etc/passwd", "' OR 1=1 --"),
    *("a" * 3_000, "{", '{"a":', "[" * 600, '{"a": 1e400}', "null", '"\\ud800"', "{% $x %}"),
    *(
        "2026-01-01T00:00:00Z",
        "9999-12-31T23:59:59Z",
        "0000-00-00",
        "1e999 d",
        "P1Y",
        "rate(1 day)",
    ),
    *("cron(0 0 * * ? *)", "$.a[99999999999999999999]", "$..*", "a = 1", "input.a[9999999999] = 1"),
    *("arn:aws:states:us-east-1:123456789012:stateMachine:x", "us-east-1", "RUNNING", "1-2", "1.1"),
)
_GOOD = ('{"StartAt":"P","States":{"P":{"Type":"Pass","End":true}}}', "{}", "1", "x", "Pass")


@dataclass
class Fuzzer:
    """A yard with something of each kind, and who asks it; ``known``: member or name -> values."""

    yard: TeamServer
    seed: int
    known: dict[str, list[str]] = field(default_factory=dict)
    violations: list[str] = field(default_factory=list)
    statuses: dict[str, int] = field(default_factory=dict)

    def draw(self, kind: str, number: int) -> random.Random:
        """Return the source of all that is random in one request."""
        return random.Random(f"{self.seed}/{kind}/{number}")

    def text(self, rng: random.Random, name: str) -> str:
        """Return a value for a field of this name: mostly one that exists, else an odd one."""
        values = self.known.get(name) or self.known.get(name.lower())
        if values and rng.random() < 0.8:
            return rng.choice(values)
        return rng.choice(_ODD if rng.random() < 0.7 else _GOOD)

    def note(self, kind: str, number: int, what: str, status: int, problem: str) -> None:
        """Count an answer, and keep what is wrong with it."""
        label = f"{kind} {status}"
        self.statuses[label] = self.statuses.get(label, 0) + 1
        if problem:
            self.violations.append(f"{kind} {number}: {what}: {problem}")


def fuzz(folder: Path, server: Postgres | None, size: Size) -> Report:
    """Make ``n`` calls of the API, and as many requests of pages."""
    report = Report("fuzz", size.seed, size.n)
    _set_up(folder)
    yard = begin(folder, server, size)
    fuzzer = Fuzzer(yard, size.seed)
    try:
        _prepare(fuzzer)
        for kind, maker in (("api", _caller), ("page", _visitor)):
            begun = time.monotonic()
            address = f"http://127.0.0.1:{yard.port}"
            with (
                httpx.Client(base_url=address, timeout=_LATE_S) as web,
                ThreadPoolExecutor(_THREADS) as pool,
            ):
                list(pool.map(maker(fuzzer, web), range(size.n)))
            report.facts[f"{kind}_s"] = round(time.monotonic() - begun, 1)
        alive = httpx.get(f"http://127.0.0.1:{yard.port}/healthz", timeout=_LATE_S)
        if alive.status_code != httpx.codes.OK:
            fuzzer.violations.append(f"healthz says {alive.status_code} afterwards")
    finally:
        report.violations += fuzzer.violations
        (folder / "violations.txt").write_text("\n".join(fuzzer.violations), "utf-8")
        report.facts["answers"] = dict(sorted(fuzzer.statuses.items()))
        close(yard, None, report)
    return report


def _set_up(folder: Path) -> None:
    """Let this process know the addresses and the service models, as the server's code has them."""
    import django
    from django.conf import settings

    if not settings.configured:
        os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.config.settings")
        os.environ["STATEYARD_DATA"] = str(folder / "own")
        os.environ["STATEYARD_SECRET"] = secrets.token_hex(32)
    django.setup()


def _prepare(fuzzer: Fuzzer) -> None:
    """Make something of each kind, and note how it is called."""
    client = fuzzer.yard.client()
    machines = [machine_arn(shape.name) for shape in SHAPES]
    names: list[str] = []
    executions: list[str] = []
    for machine in machines:
        for number in range(3):
            name = f"fuzz-{number}"
            arn = client.start_execution(
                stateMachineArn=machine, name=name, input=json.dumps({"n": number})
            )["executionArn"]
            executions.append(arn)
            names.append(name)
    version = client.publish_state_machine_version(stateMachineArn=machines[0])
    versions = [version["stateMachineVersionArn"]]
    routes = [{"stateMachineVersionArn": versions[0], "weight": 100}]
    alias = client.create_state_machine_alias(name="live", routingConfiguration=routes)
    fuzzer.known = {
        "stateMachineArn": [*machines, *versions, alias["stateMachineAliasArn"]],
        "stateMachineVersionArn": versions,
        "stateMachineAliasArn": [alias["stateMachineAliasArn"]],
        "resourceArn": machines,
        "TargetArn": machines,
        "Arn": machines,
        "executionArn": executions,
        "arn": [*machines, *executions],
        "activityArn": [ACTIVITY],
        "activity": [ACTIVITY.rpartition(":")[2]],
        "machine": [shape.name for shape in SHAPES],
        "machine_name": [shape.name for shape in SHAPES],
        "execution": names,
        "execution_name": names,
        "definition": [*(shape.text for shape in SHAPES), _GOOD[0]],
        "text": [_GOOD[0]],
        "roleArn": ["arn:aws:iam::123456789012:role/fuzz"],
        "role": ["arn:aws:iam::123456789012:role/fuzz"],
        "name": ["fuzz-new", "fuzz-0"],
        "Namespace": ["AWS/States"],
        "MetricName": ["ExecutionsStarted", "ExecutionTime"],
        "metric": ["ExecutionsStarted", "ExecutionTime"],
        "logGroupName": [_GROUP],
        "Rule": ["fuzz"],
        "Name": ["fuzz"],
        "rule": ["fuzz"],
        "ScheduleExpression": ["rate(1 day)", "cron(0 0 * * ? *)"],
        "EventPattern": ['{"source": ["aws.states"]}'],
        "field": ["input", "output", "cause"],
        "number": ["1", "2", "3"],
        "step": ["Only", "S3", "Map"],
        "kind": ["graph.svg", "outline.txt"],
    }


# -- calls of the API ------------------------------------------------------------------------------


def _caller(fuzzer: Fuzzer, web: httpx.Client) -> Callable[[int], None]:
    """Return what makes one call of a number: any action, each with what its model knows."""
    from console.awsapi import services

    actions = [
        (service, action) for service in services.SERVICES for action in sorted(service.handlers)
    ]
    yard = fuzzer.yard
    yard.client()
    keys = Credentials(*yard._key)

    def call(number: int) -> None:
        rng = fuzzer.draw("api", number)
        service, action = rng.choice(actions)
        shape = service.operation(action).input_shape
        params = _made(fuzzer, rng, shape, "", 0)
        if action == "GetActivityTask":  # which waits a minute for a task
            params = {"activityArn": rng.choice(_ODD)}
        body = json.dumps(params, ensure_ascii=rng.random() < 0.5).encode("utf-8", "surrogatepass")
        if rng.random() < 0.02:
            body = rng.choice((b"", b"[]", b"null", b"{", b"\xff\xfe", b'{"a":' * 2_000, body[:-1]))
        headers = {
            "Content-Type": service.content_type,
            "X-Amz-Target": f"{service.target}.{action}",
        }
        request = AWSRequest("POST", f"http://127.0.0.1:{yard.port}/", headers, body)
        SigV4Auth(keys, service.scope, "us-east-1").add_auth(request)
        what = f"{action} {body[:600]!r}"
        try:
            answer = web.post("/", content=body, headers=dict(request.headers.items()))
        except httpx.HTTPError as error:
            fuzzer.note("api", number, what, 0, f"{type(error).__name__} {error}")
            return
        fuzzer.note("api", number, what, answer.status_code, _api_problem(answer))

    return call


def _api_problem(answer: httpx.Response) -> str:
    """Say what is wrong with an answer of the API, "" if it is as AWS's."""
    if answer.status_code >= httpx.codes.INTERNAL_SERVER_ERROR:
        return f"{answer.status_code} {answer.text[:200]}"
    try:
        body = answer.json()
    except ValueError:
        return f"{answer.status_code} is not JSON: {answer.text[:100]}"
    if answer.status_code != httpx.codes.OK and not {"__type", "message"} <= body.keys():
        return f"{answer.status_code} without __type and message: {answer.text[:100]}"
    return ""


def _made(fuzzer: Fuzzer, rng: random.Random, shape: Shape, name: str, depth: int) -> Any:
    """Return a value for a member: of its type, mostly, and now and then of any other."""
    if depth and rng.random() < 0.03:
        return rng.choice((None, True, [], {}, "x", rng.choice(NUMBERS)))
    match shape.type_name:
        case "structure":
            members = {}
            for member, inner in shape.members.items():
                needed = member in shape.required_members
                if rng.random() < (0.95 if needed else 0.3 / (1 + depth)):
                    members[member] = _made(fuzzer, rng, inner, member, depth + 1)
            return members
        case "list":
            count = rng.choice((0, 1, 1, 1, 2, 3))
            return [_made(fuzzer, rng, shape.member, name, depth + 1) for _ in range(count)]
        case "map":
            return {rng.choice(_ODD): _made(fuzzer, rng, shape.value, name, depth + 1)}
        case "boolean":
            return rng.random() < 0.5
        case "integer" | "long" | "float" | "double" | "timestamp":
            usual = (1, 10, 60, 100, 1_700_000_000)
            return rng.choice(usual if rng.random() < 0.4 else NUMBERS)
        case _:
            values = shape.metadata.get("enum")
            if values and rng.random() < 0.8:
                return rng.choice(values)
            return _text(fuzzer, rng, name)


def _text(fuzzer: Fuzzer, rng: random.Random, name: str) -> str:
    """Return a value for a text; a definition is now and then one with something else in it."""
    text = fuzzer.text(rng, name)
    if name not in ("definition", "text") or rng.random() < 0.5:
        return text
    try:
        return json.dumps(_changed(rng, json.loads(rng.choice(fuzzer.known["definition"]))))
    except (ValueError, RecursionError):
        return text


def _changed(rng: random.Random, value: Any) -> Any:
    """Return a JSON value in which a part, at any depth, is another or has another name."""
    keys = [*value] if isinstance(value, dict) else [*range(len(value))] if _holds(value) else []
    if not keys or rng.random() < 0.15:
        return rng.choice((None, True, [], {}, [value], rng.choice(NUMBERS), rng.choice(_ODD)))
    key = rng.choice(keys)
    if isinstance(value, dict) and rng.random() < 0.1:
        return {(rng.choice(_ODD) if name == key else name): value[name] for name in value}
    value[key] = _changed(rng, value[key])
    return value


def _holds(value: Any) -> bool:
    return isinstance(value, list) and bool(value)


# -- requests of pages -----------------------------------------------------------------------------


def _visitor(fuzzer: Fuzzer, web: httpx.Client) -> Callable[[int], None]:
    """Return what makes one request of a number: any address, with what pages ask for."""
    yard = fuzzer.yard
    link = yard.manage("login_url", "--user", "chaos").split()[-1]
    path = "/login/" + link.rstrip("/").rpartition("/")[2] + "/"
    web.get(path)  # which sets the cookie of forms
    web.post(path, headers={"X-CSRFToken": web.cookies["stateyard_csrf"]})
    web.get("/machines/new/").raise_for_status()  # a redirect would lead to the login
    patterns, names = sorted(addresses()), sorted(asked_names())

    def visit(number: int) -> None:
        rng = fuzzer.draw("page", number)
        path = _path(fuzzer, rng, rng.choice(patterns))
        told = {name: _text(fuzzer, rng, name) for name in rng.sample(names, rng.randrange(6))}
        sends = rng.random() < 0.3 and not _leaves(path)
        csrf = web.cookies.get("stateyard_csrf") or ""
        form = "application/x-www-form-urlencoded"
        headers = {"X-CSRFToken": csrf, "Content-Type": form} if sends else {}
        if rng.random() < 0.3:
            headers["HX-Request"] = "true"
        query = "" if sends else urlencode(told, errors="replace")
        what = f"{'POST' if sends else 'GET'} {path}?{query}{told if sends else ''}"[:800]
        try:
            answer = web.request(
                "POST" if sends else "GET",
                f"{path}?{query}" if query else path,
                headers=headers,
                content=urlencode(told, errors="replace") if sends else None,
            )
        except httpx.HTTPError as error:
            fuzzer.note("page", number, what, 0, f"{type(error).__name__} {error}")
            return
        late = answer.elapsed.total_seconds() > _LATE_S / 2
        wrong = answer.status_code >= httpx.codes.INTERNAL_SERVER_ERROR
        problem = f"{answer.status_code} after {answer.elapsed}" if wrong or late else ""
        fuzzer.note("page", number, what, answer.status_code, problem)

    return visit


def _leaves(path: str) -> bool:
    """Return whether a POST would end what the suite itself needs: its session, its key."""
    return path.startswith(("/login", "/logout", "/keys/", "/password/", "/members/"))


def addresses() -> Iterator[str]:
    """Yield every address of a page, as ``/machines/<str:machine>/``."""
    from django.urls import URLResolver, get_resolver

    def below(resolver: Any, before: str) -> Iterator[str]:
        for pattern in resolver.url_patterns:
            route = before + str(pattern.pattern)
            if isinstance(pattern, URLResolver):
                yield from below(pattern, route)
            else:
                yield route

    yield from below(get_resolver(), "/")


def asked_names() -> set[str]:
    """Return the names of what pages read of queries and forms, from their code and templates."""
    folders = (ROOT / "console" / "web", ROOT / "console" / "features")
    modules = [path.read_text() for folder in folders for path in folder.rglob("*.py")]
    code = "".join(text for text in modules if "HttpRequest" in text or "QueryDict" in text)
    pages = "".join(path.read_text() for path in (ROOT / "templates").rglob("*.html"))
    read = re.findall(r"""\.get(?:list)?\(\s*"([a-z_]+)\"""", code)
    return {*read, *re.findall(r"""\bname="([a-z_]+)\"""", pages)}


def _path(fuzzer: Fuzzer, rng: random.Random, route: str) -> str:
    """Fill the places of an address."""

    def value(match: re.Match[str]) -> str:
        text = fuzzer.text(rng, match[1])
        return quote(text.replace("\x00", ""), safe=":", errors="replace") or "-"

    return re.sub(r"<(?:\w+:)?(\w+)>", value, route)
