"""Pydantic models of the JSON files that operators write: functions, targets, sign-in, mocks.

They only validate: the value is used as written. Error messages describe values that may be secrets
by their type alone (``console.config.environment``).
"""

from __future__ import annotations

import difflib
import re
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    TypeAdapter,
    model_validator,
)
from pydantic_core import PydanticCustomError

from console.config import environment, http_headers
from console.config.function_options import OWN, SHARED, is_callable_target, is_function

_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)

_PROVIDER_ID = re.compile(r"[a-z0-9][a-z0-9-]{0,31}")
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_INVOCATIONS = re.compile(r"\d{1,9}(-\d{1,9})?", re.ASCII)
_ACTION = re.compile(r"\*|[a-zA-Z0-9*-]+:[a-zA-Z0-9*]+")


def _web_address(text: str) -> str:
    if not environment.is_web_address(text):
        raise ValueError("http://host:port or https://host")
    return text


def _iam_action(text: str) -> str:
    if not _ACTION.fullmatch(text):
        raise ValueError("an action as sqs:SendMessage or sqs:*")
    return text


def _function(text: str) -> str:
    if not environment.is_web_address(text) and not is_callable_target(text):
        raise ValueError("module:callable, or the http:// or https:// address of a function")
    return text


def _filled(text: str) -> str:
    if not text.strip():
        raise ValueError("a text that is not empty")
    return text


def _variable(text: str) -> str:
    if not _NAME.fullmatch(text):
        raise ValueError("the name of a variable: letters, digits and _")
    return text


def _process(text: str) -> str:
    if text not in (OWN, SHARED) and not is_function("process", text):
        raise ValueError('"own" or "shared", or module:callable for a function of this name')
    return text


WebAddress = Annotated[str, AfterValidator(_web_address)]
Target = Annotated[str, AfterValidator(_function)]
_FilledText = Annotated[str, AfterValidator(_filled)]
_TEXT, _OBJECT = environment.KINDS_OF_ENTRY


class _Exact(BaseModel):
    """An object without unknown members: a misspelt name would send calls elsewhere."""

    model_config = ConfigDict(extra="forbid", strict=True)

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown(cls, value: Any) -> Any:
        """Refuse a member without a field."""
        for name in value if isinstance(value, dict) else ():
            if name not in cls.model_fields:
                context = {"name": name, "known": ", ".join(cls.model_fields)}
                raise PydanticCustomError(environment.UNKNOWN, "one of: {known}", context)
        return value


class ServiceShape(_Exact):
    """The endpoint and credentials for calls to a service."""

    endpoint_url: WebAddress | None = None
    region: str | None = None
    profile: str | None = None
    access_key_id: str | None = None
    secret_access_key: str | None = None


class HttpParameter(_Exact):
    """A header, a query parameter or a body member, in the form of EventBridge."""

    Key: _FilledText
    Value: str
    IsValueSecret: bool = False


class HttpHeader(HttpParameter):
    """A valid header that does not control the connection."""

    @model_validator(mode="after")
    def _sendable(self) -> HttpHeader:
        if not http_headers.is_header(self.Key, self.Value):
            raise ValueError("a header whose name and value can be sent")
        if http_headers.is_framing(self.Key):
            raise ValueError("a header that the client does not set itself")
        return self


class HttpParameters(_Exact):
    """The parameters that a connection adds to requests."""

    HeaderParameters: list[HttpHeader] = []
    QueryStringParameters: list[HttpParameter] = []
    BodyParameters: list[HttpParameter] = []


class OAuthClient(_Exact):
    """The client id and secret for an authorization server."""

    ClientID: _FilledText
    ClientSecret: _FilledText


class OAuthShape(_Exact):
    """The authorization of a connection by OAuth, in the form of EventBridge."""

    AuthorizationEndpoint: WebAddress
    HttpMethod: Literal["GET", "POST", "PUT"]
    ClientParameters: OAuthClient
    OAuthHttpParameters: HttpParameters | None = None


_CONNECTION_MEMBERS: dict[Any, tuple[str, ...]] = {
    "API_KEY": ("name", "value"),
    "BASIC": ("username", "password"),
    "OAUTH_CLIENT_CREDENTIALS": ("OAuthParameters",),
}
"""Type of a connection -> the members for its authorization."""


class ConnectionShape(_Exact):
    """A connection: the authentication of HTTP Tasks, and parameters added to their requests."""

    type: Literal["API_KEY", "BASIC", "OAUTH_CLIENT_CREDENTIALS"] = "API_KEY"
    name: str | None = None
    value: str | None = None
    username: str | None = None
    password: str | None = None
    OAuthParameters: OAuthShape | None = None
    InvocationHttpParameters: HttpParameters | None = None

    @model_validator(mode="after")
    def _complete(self) -> ConnectionShape:
        members = _CONNECTION_MEMBERS[self.type]
        if any(getattr(self, name) is None for name in members if name != "name"):
            names = " and ".join(members) if self.type != "API_KEY" else "a value"
            raise ValueError(f"{names} for a connection of type {self.type}")
        read = ("type", *members, "InvocationHttpParameters")
        for name in self.model_fields_set - set(read):
            context = {"name": name, "known": ", ".join(read)}
            raise PydanticCustomError(environment.UNKNOWN, "one of: {known}", context)
        if self.type == "API_KEY" and not http_headers.is_header(
            self.name or "Authorization", self.value or ""
        ):
            raise ValueError("a name and a value that can be sent as a header")
        return self


class Http(_Exact):
    """The addresses that HTTP Tasks may call, and the connections."""

    endpoints: list[WebAddress] = []
    connections: dict[str, ConnectionShape] = {}


class Kubernetes(_Exact):
    """The clusters that may be called, and their tokens or credentials."""

    endpoints: list[WebAddress] = []
    token: str | None = None
    profile: str | None = None
    region: str | None = None
    access_key_id: str | None = None
    secret_access_key: str | None = None


class FunctionShape(_Exact):
    """A function with options; without options the text ``handler`` is enough."""

    handler: Target
    process: Literal["own", "shared"] = "own"
    python: _FilledText | None = None
    folder: _FilledText | None = None
    timeout: Annotated[float, Field(gt=0, le=900, strict=False)] | None = None
    memory: Annotated[int, Field(ge=32, le=10_240)] | None = None
    environment: dict[Annotated[str, AfterValidator(_variable)], str] = {}

    @model_validator(mode="after")
    def _fitting(self) -> FunctionShape:
        options = self.model_fields_set - {"handler", "process"}
        if environment.is_web_address(self.handler) and self.model_fields_set != {"handler"}:
            raise ValueError("no options beside the address of a function")
        if self.process == SHARED and options:
            names = ", ".join(sorted(options))
            raise ValueError(f'"process": "own" with {names}')
        return self


def _kind_of_entry(value: Any) -> str:
    return _OBJECT if isinstance(value, dict) else _TEXT


_TaggedShape = Annotated[FunctionShape, Tag(_OBJECT)]
_BY_KIND = Discriminator(_kind_of_entry)
Function = Annotated[Annotated[Target, Tag(_TEXT)] | _TaggedShape, _BY_KIND]
PythonOption = Annotated[Annotated[_FilledText, Tag(_TEXT)] | _TaggedShape, _BY_KIND]
ProcessOption = Annotated[
    Annotated[str, AfterValidator(_process), Tag(_TEXT)] | _TaggedShape, _BY_KIND
]


class FunctionSection(BaseModel):
    """Functions by name, and the options for all of them."""

    model_config = ConfigDict(extra="allow", strict=True)
    __pydantic_extra__: dict[str, Function]

    python: PythonOption | None = None
    process: ProcessOption | None = None


ALL_SERVICES = "*"


@cache
def _services() -> frozenset[str]:
    """Return botocore's names of services, those of the AWS CLI and of boto3."""
    from botocore.loaders import Loader

    return frozenset(Loader().list_available_services("service-2"))


class Section(BaseModel):
    """Services by name, and the entries ``http`` and ``kubernetes``."""

    model_config = ConfigDict(extra="allow", strict=True)
    __pydantic_extra__: dict[str, ServiceShape]

    http: Http | None = None
    kubernetes: Kubernetes | None = None

    @model_validator(mode="after")
    def _services_exist(self) -> Section:
        for name in set(self.__pydantic_extra__) - {ALL_SERVICES}:
            if name not in _services():
                own = sorted(type(self).model_fields)
                alike = difflib.get_close_matches(name, [*_services(), *own], n=2) or ["sqs"]
                context = {"name": name, "alike": ", ".join(alike), "own": ", ".join(own)}
                words = "a service of boto3 such as {alike}, or one of: *, {own}"
                raise PydanticCustomError(environment.UNKNOWN, words, context)
        return self


class MachineShape(Section):
    """Settings of one state machine."""

    functions: FunctionSection | None = None


class ProjectShape(Section):
    """Settings of one project."""

    machines: dict[str, MachineShape] = {}


class Targets(ProjectShape):
    """The file ``targets.json``."""

    projects: dict[str, ProjectShape] = {}


class Functions(FunctionSection):
    """The file ``functions.json``: functions by name, and sections of projects."""

    projects: dict[str, FunctionSection] = {}


class Permissions(_Exact):
    """The file ``permissions.json``: role -> denied actions."""

    deny: dict[str, list[Annotated[str, AfterValidator(_iam_action)]]] = {}


def _provider_id(text: str) -> str:
    if not _PROVIDER_ID.fullmatch(text):
        raise ValueError("1 to 32 small letters, digits and -, as in the address of the sign-in")
    return text


def _issuer(text: str) -> str:
    parts = environment.split_address(text)
    is_secure = parts is not None and (parts.scheme == "https" or parts.hostname in _LOOPBACK)
    if not environment.is_web_address(text) or not is_secure:
        raise ValueError("https://host, or http:// on this machine")
    return text


_ProjectRoles = dict[_FilledText, Literal["viewer", "operator", "editor", "owner"]]


class OidcProvider(_Exact):
    """An OpenID Connect provider with which people sign in.

    ``groups``: group -> project -> role; the group ``*`` is everybody. ``administrators``: groups
    whose members administer the server.
    """

    name: _FilledText | None = None
    issuer: Annotated[str, AfterValidator(_issuer)]
    client_id: _FilledText
    client_secret: str = ""
    scopes: list[_FilledText] = []
    name_claim: _FilledText = "preferred_username"
    groups_claim: _FilledText = "groups"
    groups: dict[_FilledText, _ProjectRoles] = {}
    administrators: list[_FilledText] = []


def _invocations(text: str) -> str:
    if not _INVOCATIONS.fullmatch(text):
        raise ValueError('the number of an invocation, as "0", or a range as "1-3"')
    return text


class MockedMachine(_Exact):
    """The test cases of a state machine: name -> state -> name of a response."""

    TestCases: dict[str, dict[str, str]] = {}


class MockedError(_Exact):
    """The error of a mocked Task."""

    Error: str | None = None
    Cause: str | None = None


class MockedResponse(_Exact):
    """The result or the error of a mocked Task."""

    Return: Any = None
    Throw: MockedError | None = None

    @model_validator(mode="after")
    def _one_of_two(self) -> MockedResponse:
        """Refuse a response with both a result and an error, or with neither."""
        if len(self.model_fields_set) != 1:
            raise ValueError("one of Return and Throw")
        return self


Invocations = Annotated[str, AfterValidator(_invocations)]


class Mocks(_Exact):
    """``MockConfigFile.json``, in the format of Step Functions Local."""

    StateMachines: dict[str, MockedMachine] = {}
    MockedResponses: dict[str, dict[Invocations, MockedResponse]] = {}

    @model_validator(mode="after")
    def _responses_are_there(self) -> Mocks:
        """Refuse a test case with an undefined response."""
        for machine, about in self.StateMachines.items():
            for case, states in about.TestCases.items():
                for state, response in states.items():
                    if response not in self.MockedResponses:
                        place = f"StateMachines: {machine}: TestCases: {case}: {state}"
                        raise ValueError(
                            f"one of the MockedResponses for {place}, not {response!r}"
                        )
        return self


FUNCTIONS: TypeAdapter[Any] = TypeAdapter(Functions)
TARGETS: TypeAdapter[Any] = TypeAdapter(Targets)
PERMISSIONS: TypeAdapter[Any] = TypeAdapter(Permissions)
OIDC: TypeAdapter[Any] = TypeAdapter(
    dict[Annotated[str, AfterValidator(_provider_id)], OidcProvider]
)
MOCKS: TypeAdapter[Any] = TypeAdapter(Mocks)
OBJECT: TypeAdapter[Any] = TypeAdapter(dict[str, Any])
