"""What an HTTP Task sends, what it adds from its connection, and what its answers become.

Source: "Call HTTPS APIs in Step Functions workflows" of the documentation.
"""

from __future__ import annotations

import base64
import json
import re
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, quote, quote_plus, unquote

import pytest

import engine
from console.integrations import connections, web
from console.integrations.outcome import Failed, Succeeded, TaskAttempt

if TYPE_CHECKING:
    from collections.abc import Iterator

FORM = "application/x-www-form-urlencoded"
TOKENS = "/token"


@dataclass
class Request:
    """A request that reached the server."""

    method: str
    path: str
    headers: dict[str, str]
    body: str


@dataclass
class Site:
    """A server that notes requests. ``answers``: status, type and body, the last one for ever."""

    url: str = ""
    requests: list[Request] = field(default_factory=list)
    answers: list[tuple[int, str, bytes]] = field(
        default_factory=lambda: [(200, "application/json", b"{}")]
    )
    tokens: list[str] = field(default_factory=list)
    refused: set[str] = field(default_factory=set)
    token_answer: dict[str, Any] = field(default_factory=dict)

    def answer(self, request: Request) -> tuple[int, str, bytes]:
        """Answer a request: 401 to a refused token, a new token to one for a token."""
        if request.path.startswith(TOKENS):
            self.tokens.append(f"token-{len(self.tokens)}-abcdef")
            told = {"access_token": self.tokens[-1], "token_type": "bearer", "expires_in": 3600}
            return 200, "application/json", json.dumps(told | self.token_answer).encode()
        self.requests.append(request)
        if request.headers.get("Authorization", "").removeprefix("Bearer ") in self.refused:
            return 401, "application/json", b"{}"
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


@pytest.fixture
def site(settings: Any) -> Iterator[Site]:
    """A server that the operator has named, with a connection."""
    site = Site()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
            request = Request(self.command, self.path, dict(self.headers), body)
            status, kind, data = site.answer(request)
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_POST = do_PUT = do_GET  # noqa: N815 - the names of the base class

        def log_message(self, *_: Any) -> None:
            """Print nothing."""

    served = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=served.serve_forever, args=(0.02,), daemon=True).start()
    site.url = f"http://127.0.0.1:{served.server_port}"
    connect(settings, site, {"name": "X-Key", "value": "hush-hush"})
    yield site
    served.shutdown()
    served.server_close()


def connect(settings: Any, site: Site, connection: dict[str, Any]) -> None:
    """Let HTTP Tasks call a server with a connection."""
    http = {"endpoints": [site.url], "connections": {"shop": connection}}
    settings.STATEYARD_TARGETS = {"http": http, "apigateway": {"endpoint_url": site.url}}


def call(site: Site, service: str = "http", **parameters: Any) -> Succeeded | Failed:
    """Run a Task with parameters."""
    whole = {"ApiEndpoint": f"{site.url}/pay", "Method": "POST"}
    if service == "http":
        whole["InvocationConfig"] = {"ConnectionArn": "shop"}  # type: ignore[assignment]
    task = TaskAttempt(
        kind="service",
        resource=f"arn:aws:states:::{service}:invoke",
        service=service,
        action="invoke",
        input=json.dumps(whole | parameters),
        idempotency_key="k",
        execution_arn="",
        token="",
    )
    outcome = web.call(task)
    assert isinstance(outcome, Succeeded | Failed)
    return outcome


def transform(**fields: Any) -> dict[str, Any]:
    """Return the fields that make a form of the body."""
    return {"Headers": {"Content-Type": FORM}, "Transform": fields}


def form_of(site: Site, body: Any, array_format: str | None = None) -> str:
    """Return a body as it is sent as a form."""
    options = {"RequestEncodingOptions": {"ArrayFormat": array_format}} if array_format else {}
    outcome = call(
        site, RequestBody=body, **transform(RequestBodyEncoding="URL_ENCODED", **options)
    )
    assert isinstance(outcome, Succeeded), outcome
    assert site.requests[-1].headers["Content-Type"] == FORM
    return site.requests[-1].body


# -- forms -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("array_format", "sent"),
    [
        (None, "t[0]=a&t[1]=b"),
        ("INDICES", "t[0]=a&t[1]=b"),
        ("BRACKETS", "t[]=a&t[]=b"),
        ("REPEAT", "t=a&t=b"),
        ("COMMAS", "t=a,b"),
    ],
)
def test_arrays_go_into_a_form_in_the_format_of_the_state(
    site: Site, array_format: str | None, sent: str
) -> None:
    """By their indices unless the state says otherwise."""
    assert unquote(form_of(site, {"t": ["a", "b"]}, array_format)) == sent


def test_a_form_as_the_documentation_shows_it(site: Site) -> None:
    """Blanks are %20, and members of objects stand in brackets, which are encoded, too."""
    body = {"note": "two words", "m": {"k": "a b"}}
    assert form_of(site, body, "INDICES") == "note=two%20words&m%5Bk%5D=a%20b"


@pytest.mark.parametrize(
    ("array_format", "sent"),
    [
        ("INDICES", "a[0][b]=1&a[1][0]=2&c=true&d=&g=1.5&h=x%26y=z+é"),
        ("BRACKETS", "a[][b]=1&a[][]=2&c=true&d=&g=1.5&h=x%26y=z+é"),
        ("REPEAT", "a[b]=1&a=2&c=true&d=&g=1.5&h=x%26y=z+é"),
    ],
)
def test_values_of_every_kind_in_a_form(site: Site, array_format: str, sent: str) -> None:
    """Arrays in objects and objects in arrays; empty ones leave nothing."""
    value = {"b": 1}, [2]
    body = {"a": value, "c": True, "d": None, "e": [], "f": {}, "g": 1.5, "h": "x%26y=z+é"}
    text = form_of(site, body, array_format)
    assert unquote(text) == sent
    assert dict(parse_qsl(text, keep_blank_values=True))["h"] == "x%26y=z+é"


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"RequestBodyEncoding": "BASE64"}, "'RequestBodyEncoding' must be one of"),
        ({"RequestBodyEncoding": "url_encoded"}, "'RequestBodyEncoding' must be one of"),
        ({"RequestEncodingOptions": {"ArrayFormat": "JSON"}}, "'ArrayFormat' must be one of"),
        ({"RequestEncodingOptions": {"ArrayFormat": "NONE"}}, "'ArrayFormat' must be one of"),
    ],
)
def test_an_unknown_format_is_refused(site: Site, fields: dict[str, Any], said: str) -> None:
    """By the definition where it stands there, else when the task runs; nothing is sent."""
    outcome = call(site, RequestBody={"a": 1}, Transform=fields)
    assert isinstance(outcome, Failed)
    assert (outcome.error, said in str(outcome.cause)) == ("States.Runtime", True)
    assert site.requests == []
    assert any(said in message for message in refused({"Transform": fields}))


@pytest.mark.parametrize(
    ("body", "array_format", "said"),
    [
        ([1], "INDICES", "'RequestBody' must be an OBJECT"),
        (7, "INDICES", "'RequestBody' must be an OBJECT"),
        ({"t": [{"a": 1}]}, "COMMAS", "the array 't'"),
    ],
)
def test_a_body_that_is_no_form_is_refused(
    site: Site, body: Any, array_format: str, said: str
) -> None:
    """Nothing is sent as JSON in its place."""
    options = {"RequestEncodingOptions": {"ArrayFormat": array_format}}
    fields = transform(RequestBodyEncoding="URL_ENCODED", **options)
    outcome = call(site, RequestBody=body, **fields)
    assert isinstance(outcome, Failed)
    assert (outcome.error, said in str(outcome.cause)) == ("States.Runtime", True)
    assert site.requests == []


# -- definitions -----------------------------------------------------------------------------------


def refused(parameters: dict[str, Any], service: str = "http", **fields: Any) -> list[str]:
    """Return what a definition with an HTTP Task is refused for."""
    whole = {"ApiEndpoint": "https://x", "Method": "GET"}
    if service == "http":
        whole["InvocationConfig"] = {"ConnectionArn": "c"}  # type: ignore[assignment]
    where = "Arguments" if fields.get("QueryLanguage") == "JSONata" else "Parameters"
    resource = f"arn:aws:states:::{service}:invoke"
    task = {"Type": "Task", "Resource": resource, where: whole | parameters, "End": True, **fields}
    text = json.dumps({"StartAt": "Pay", "States": {"Pay": task}})
    return [problem.message for problem in engine.check(text)]


@pytest.mark.parametrize(
    ("service", "parameters", "name"),
    [
        ("http", {"Timeout": 3}, "Timeout"),
        ("http", {"Transform": {"BodyEncoding": "NONE"}}, "BodyEncoding"),
        ("http", {"Transform": {"RequestEncodingOptions": {"Format": "COMMAS"}}}, "Format"),
        ("http", {"InvocationConfig": {"ConnectionArn": "c", "Private": True}}, "Private"),
        ("http", {"Stage": "dev"}, "Stage"),
        ("apigateway", {"Transform": {}}, "Transform"),
    ],
)
def test_a_field_that_is_not_read_is_refused(
    service: str, parameters: dict[str, Any], name: str
) -> None:
    """At any depth, for both services that send web requests."""
    message = f'The field "{name}" is not supported by Step Functions'
    assert refused(parameters, service) == [message]


def test_values_that_are_known_at_run_time_only_are_accepted() -> None:
    """Paths and expressions are judged when the task runs."""
    assert refused({"Transform": {"RequestBodyEncoding.$": "$.e"}}) == []
    assert refused({"Transform.$": "$.t", "Headers.$": "$.h", "RequestBody": [1]}) == []
    options = {"RequestBodyEncoding": "{% $e %}", "RequestEncodingOptions": "{% $o %}"}
    assert refused({"Transform": options}, QueryLanguage="JSONata") == []


# -- headers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("service", "name", "value", "said"),
    [
        ("http", "Content-Length", "3", "'Content-Length' cannot be set"),
        ("http", "content-length", "3", "'content-length' cannot be set"),
        ("http", "Transfer-Encoding", "chunked", "cannot be set"),
        ("http", "If-None-Match", "x", "cannot be set"),
        ("http", "X-Amz-Date", "x", "cannot be set"),
        ("apigateway", "Content-Length", "3", "cannot be set"),
        ("apigateway", "Www-Authenticate", "x", "cannot be set"),
        ("http", "X Y", "1", "'Headers' has an invalid format"),
        ("http", "X-Y", "1\r\nX-Z: 2", "'Headers' has an invalid format"),
        ("http", "X-Y", "é", "'Headers' has an invalid format"),
        ("http", "X-Y", " 1", "'Headers' has an invalid format"),
        ("http", "X-Y", None, "'Headers' has an invalid format"),
    ],
)
def test_a_header_that_cannot_be_set_is_refused(
    site: Site, service: str, name: str, value: Any, said: str
) -> None:
    """No error of the client's library stands in the way, and nothing is sent."""
    outcome = call(site, service, Headers={name: value}, RequestBody={"a": 1})
    assert isinstance(outcome, Failed)
    assert (outcome.error, said in str(outcome.cause)) == ("States.Runtime", True)
    assert site.requests == []


def test_headers_of_any_case_are_sent_once(site: Site) -> None:
    """Lists are joined; User-Agent is that of Step Functions."""
    headers = {"x-a": ["1", "2"], "X-A": "3", "user-agent": "me", "range": "bytes=0-9"}
    assert isinstance(call(site, Headers=headers), Succeeded)
    sent = site.requests[0].headers
    assert sent["x-a"] == "1, 2, 3"
    assert sent["range"] == "bytes=0-9"
    assert sent["User-Agent"] == "Amazon|StepFunctions|HttpInvoke|us-east-1"
    assert len({name.lower() for name in sent}) == len(sent)


# -- answers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [200, 404])
@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("image/png", bytes.fromhex("89504e470d0a1a0a00")),
        ("application/octet-stream", b"plain text"),
        ("Audio/MPEG; x=y", b"text"),
        ("video/mp4", b""),
        ("text/plain", b"\x89PNG"),
        ("application/json; charset=utf-8", b'{"a": "\xff"}'),
        ("text/plain; charset=rot13", b"\xff"),
    ],
)
def test_an_answer_that_is_no_text_fails_the_task(
    site: Site, kind: str, body: bytes, status: int
) -> None:
    """By its type or by its bytes; AWS says so of every response."""
    site.answers = [(status, kind, body)]
    outcome = call(site)
    assert isinstance(outcome, Failed)
    assert outcome.error == "States.Runtime"
    assert "answer" in str(outcome.cause)


def test_an_answer_in_another_charset_is_read(site: Site) -> None:
    """Its type says which."""
    site.answers = [(200, "text/plain; charset=iso-8859-1", "é".encode("latin-1"))]
    outcome = call(site)
    assert isinstance(outcome, Succeeded)
    assert engine.loads(outcome.output)["ResponseBody"] == "é"


# -- connections -----------------------------------------------------------------------------------


def parameters_of(**lists: dict[str, str]) -> dict[str, Any]:
    """Return parameters as EventBridge has them."""
    return {
        name: [{"Key": key, "Value": value} for key, value in values.items()]
        for name, values in lists.items()
    }


def test_a_connection_adds_its_parameters(site: Site, settings: Any) -> None:
    """Its values take the place of the state's, in headers of any case, too."""
    added = parameters_of(
        HeaderParameters={"Header-Param": "connection", "X-New": "1"},
        QueryStringParameters={"QueryParam": "connection"},
        BodyParameters={"BodyParam": "connection"},
    )
    connect(settings, site, {"name": "ApiKey", "value": "key", "InvocationHttpParameters": added})
    outcome = call(
        site,
        Headers={"Request-Id": "mine", "header-param": "state"},
        QueryParameters={"QueryParam": ["state", "state 2"], "other": "a b"},
        RequestBody={"Job": "Engineer", "BodyParam": "state"},
    )
    assert isinstance(outcome, Succeeded), outcome
    sent = site.requests[0]
    assert sent.path == "/pay?QueryParam=connection&other=a%20b"
    assert json.loads(sent.body) == {"Job": "Engineer", "BodyParam": "connection"}
    assert sent.headers["Header-Param"] == "connection"
    assert (sent.headers["X-New"], sent.headers["ApiKey"]) == ("1", "key")
    assert "header-param" not in sent.headers


def test_a_text_is_not_merged_with_the_body_of_a_connection(site: Site, settings: Any) -> None:
    """The task fails; a connection without a body leaves the text as it is."""
    added = parameters_of(BodyParameters={"a": "1"})
    connect(settings, site, {"value": "key", "InvocationHttpParameters": added})
    for body in ("a text", [1]):
        outcome = call(site, RequestBody=body)
        assert isinstance(outcome, Failed)
        assert outcome.error == "States.Runtime"
    assert site.requests == []
    assert isinstance(call(site), Succeeded)
    assert json.loads(site.requests[0].body) == {"a": "1"}


@pytest.fixture
def oauth(site: Site, settings: Any) -> dict[str, Any]:
    """A connection that asks the same server for its tokens."""
    connections._tokens.futures.clear()
    parameters = {
        "AuthorizationEndpoint": f"{site.url}{TOKENS}",
        "HttpMethod": "POST",
        "ClientParameters": {"ClientID": "yard", "ClientSecret": "client-hush"},
    }
    connection = {"type": "OAUTH_CLIENT_CREDENTIALS", "OAuthParameters": parameters}
    connect(settings, site, connection)
    return parameters


def bearers(site: Site) -> list[str]:
    """Return the tokens that requests had."""
    return [request.headers["Authorization"] for request in site.requests]


@pytest.mark.usefixtures("oauth")
def test_a_token_is_asked_for_once(site: Site) -> None:
    """Requests share it until it expires or is refused."""
    for _ in range(3):
        assert isinstance(call(site), Succeeded)
    assert len(site.tokens) == 1
    assert bearers(site) == ["Bearer token-0-abcdef"] * 3


@pytest.mark.usefixtures("oauth")
@pytest.mark.parametrize("seconds", [-1, 30, "59"])
def test_a_token_that_expires_soon_is_renewed(site: Site, seconds: Any) -> None:
    """EventBridge renews a token that lasts less than a minute."""
    site.token_answer = {"expires_in": seconds}
    for _ in range(2):
        assert isinstance(call(site), Succeeded)
    assert len(set(bearers(site))) == 2


@pytest.mark.slow
@pytest.mark.usefixtures("oauth")
def test_a_refused_token_is_renewed_and_the_request_sent_again(site: Site) -> None:
    """A new token that is refused, too, is the answer of the task."""
    assert isinstance(call(site), Succeeded)
    site.refused = {"token-0-abcdef"}
    assert isinstance(call(site), Succeeded)
    site.refused |= {f"token-{number}-abcdef" for number in range(9)}
    outcome = call(site)
    assert isinstance(outcome, Failed)
    assert outcome.error == "States.Http.StatusCode.401"
    assert len(site.tokens) == 3
    assert len(site.requests) == 5


def test_an_authorization_server_that_refuses(site: Site, oauth: dict[str, Any]) -> None:
    """The connection is unusable, by EventBridge's name for that; no secret is told."""
    oauth["AuthorizationEndpoint"] = f"{site.url}/no"
    site.answers = [(400, "text/plain", b"client-hush is wrong")]
    outcome = call(site)
    assert isinstance(outcome, Failed)
    assert outcome.error == "Events.ConnectionResource.InvalidConnectionState"
    assert "answered 400" in str(outcome.cause)
    assert "client-hush" not in str(outcome.cause)
    oauth["AuthorizationEndpoint"] = "http://127.0.0.1:9/?key=client-hush"
    outcome = call(site)
    assert isinstance(outcome, Failed)
    assert outcome.error == "Events.ConnectionResource.InvalidConnectionState"
    assert "client-hush" not in str(outcome.cause)


@pytest.mark.parametrize("method", ["GET", "POST", "PUT"])
def test_what_an_authorization_server_is_asked(
    site: Site, oauth: dict[str, Any], method: str
) -> None:
    """The grant, the client, and the connection's parameters in place of those."""
    asked: list[Request] = []
    inner = site.answer

    def answer(request: Request) -> tuple[int, str, bytes]:
        if request.path.startswith(TOKENS):
            asked.append(request)
        return inner(request)

    site.answer = answer  # type: ignore[method-assign]
    oauth |= {"HttpMethod": method}
    oauth["OAuthHttpParameters"] = parameters_of(
        HeaderParameters={"X-Tenant": "t"},
        QueryStringParameters={"q": "1 2"},
        BodyParameters={"scope": "read all"},
    )
    assert isinstance(call(site), Succeeded)
    request = asked[0]
    query = request.path.partition("?")[2]
    fields = dict(parse_qsl(query if method == "GET" else request.body))
    grant = {"grant_type": "client_credentials", "client_id": "yard"}
    grant |= {"client_secret": "client-hush", "scope": "read all"}
    assert grant.items() <= fields.items()
    assert request.method == method
    assert request.headers["X-Tenant"] == "t"
    assert "q=1%202" in query


# -- secrets ---------------------------------------------------------------------------------------

SECRET = "pa ss/wörd+1&9"


def spellings(secret: str) -> dict[str, str]:
    """Return a secret in the forms in which an endpoint may send it back."""
    data = secret.encode()
    return {
        "plain": secret,
        "quoted": quote(secret, safe=""),
        "plus": quote_plus(secret),
        "json": json.dumps(json.dumps({"a": secret})),
        "base64": base64.b64encode(data).decode(),
        "urlsafe": base64.urlsafe_b64encode(data).decode().rstrip("="),
        "hex": data.hex(),
        "HEX": data.hex().upper(),
        **{
            f"within-{n}": base64.b64encode(b"x" * n + b"Authorization: " + data + b"!").decode()
            for n in range(3)
        },
    }


def sees(text: str, secret: str) -> list[str]:
    """Return the forms in which a text has a secret, as far as a reader could undo them."""
    seen = [name for name, form in spellings(secret).items() if form in text]
    for word in re.findall(r"[A-Za-z0-9+/_-]{8,}", text):
        for cut in range(4):
            part = word[cut:].replace("-", "+").replace("_", "/")
            decoded = base64.b64decode(part[: len(part) // 4 * 4])
            if secret.encode()[:9] in decoded:
                seen.append(word)
    return seen


@pytest.mark.parametrize("status", [200, 500])
@pytest.mark.parametrize(
    "connection",
    [
        {"type": "BASIC", "username": "yard", "password": SECRET},
        {"name": "X-Key", "value": "secret-secret-12345"},
        {
            "value": "Bearer other-secret",
            "InvocationHttpParameters": {
                "BodyParameters": [{"Key": "k", "Value": SECRET, "IsValueSecret": True}]
            },
        },
    ],
    ids=["basic", "key", "parameter"],
)
def test_a_secret_that_an_endpoint_sends_back_is_not_kept(
    site: Site, settings: Any, connection: dict[str, Any], status: int
) -> None:
    """In no form, neither as the result nor as the cause of an error."""
    connect(settings, site, connection)
    secret = SECRET if SECRET in str(connection) else connection["value"]
    forms = spellings(secret)
    basic = base64.b64encode(f"yard:{SECRET}".encode()).decode()
    echo = {"forms": forms, "list": [forms["plain"]], f"name {secret}": 1, "basic": basic}
    site.answers = [(status, "application/json", json.dumps(echo).encode())]
    outcome = call(site, RequestBody={"a": 1})
    text = outcome.output if isinstance(outcome, Succeeded) else str(outcome.cause)
    assert sees(text, secret) == []
    assert "(masked)" in text
    if connection.get("type") == "BASIC":
        assert basic not in text
    site.answers = [(status, "text/plain", json.dumps(echo).encode() + b"no JSON")]
    outcome = call(site)
    text = outcome.output if isinstance(outcome, Succeeded) else str(outcome.cause)
    assert sees(text, secret) == []


def test_a_number_that_is_a_secret_is_not_kept(site: Site, settings: Any) -> None:
    """What is left is JSON."""
    connect(settings, site, {"value": "12345678"})
    site.answers = [(200, "application/json", b'{"pin": 12345678, "other": [1.5, true, null]}')]
    outcome = call(site)
    assert isinstance(outcome, Succeeded)
    body = engine.loads(outcome.output)["ResponseBody"]
    assert body == {"pin": "(masked)", "other": [1.5, True, None]}


@pytest.mark.usefixtures("oauth")
def test_a_token_that_an_endpoint_sends_back_is_not_kept(site: Site) -> None:
    """Nor the one that it refused, nor the secret of the client."""
    call(site)
    site.refused = {"token-0-abcdef"}
    site.answers = [(200, "text/plain", b"token-0-abcdef token-1-abcdef client-hush")]
    outcome = call(site)
    assert isinstance(outcome, Succeeded)
    assert engine.loads(outcome.output)["ResponseBody"] == "(masked) (masked) (masked)"


# -- API Gateway -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("allow", "body"), [(None, {"a": 1, "c": {}}), (True, {"a": 1, "b": None, "c": {"d": None}})]
)
def test_nulls_reach_an_api_where_the_state_says_so(site: Site, allow: Any, body: Any) -> None:
    """By default members that are null are not sent."""
    content = {"a": 1, "b": None, "c": {"d": None}}
    outcome = call(site, "apigateway", RequestBody=content, AllowNullValues=allow)
    assert isinstance(outcome, Succeeded), outcome
    assert json.loads(site.requests[0].body) == body


@pytest.mark.parametrize("kind", ["IAM_ROLE", "RESOURCE_POLICY"])
def test_a_request_is_signed_with_the_key_of_its_target(
    site: Site, settings: Any, kind: str
) -> None:
    """An emulator that is named without a key gets no signature."""
    assert isinstance(call(site, "apigateway", AuthType=kind), Succeeded)
    assert "Authorization" not in site.requests[0].headers
    key = {"access_key_id": "AKIA", "secret_access_key": "secret", "region": "eu-west-1"}
    settings.STATEYARD_TARGETS["apigateway"] |= key
    assert isinstance(call(site, "apigateway", AuthType=kind, RequestBody={"a": 1}), Succeeded)
    signature = site.requests[1].headers["Authorization"]
    assert signature.startswith("AWS4-HMAC-SHA256 Credential=AKIA/")
    assert "/eu-west-1/execute-api/aws4_request" in signature
    assert isinstance(call(site, "apigateway", AuthType="NO_AUTH"), Succeeded)
    assert "Authorization" not in site.requests[2].headers
