"""Each error that an operation can raise is one that its callers know from AWS's service model.

The test reads the code: from the function that answers an operation it follows every name of
``console`` that a function mentions, and collects the error codes on the way. It finds more than
can happen (an error may be caught, or a branch never taken), never less, but for what is reached
through a value, such as a handler in a table.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from console import errors
from console.awsapi import rest_json, services
from console.errors import (
    CodedError,
    ConflictException,
    ErrorCode,
    ServiceError,
    ValidationException,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[3]
CLASSES: dict[str, str] = {
    name: value.CODE
    for name, value in vars(errors).items()
    if isinstance(value, type) and issubclass(value, CodedError) and value is not CodedError
}
"""Error class -> its code."""
COMMON = {
    ErrorCode.AccessDeniedException: "the caller's role",
    ErrorCode.ServiceUnavailable: "the server has more to do than it can",
    ErrorCode.ThrottlingException: "the project's rate",
    ErrorCode.ValidationException: "the input violates a constraint; CloudWatch: ValidationError",
}
"""Code -> what it is about. AWS's "Common Errors" name them for every operation."""
TRANSLATED = "console.awsapi.paging raises it; the operation answers its service's own code"
NO_CODE = "the model of the alarm actions names no code for a bad value; others have this one"
SAME_AS_STATISTICS = "GetMetricStatistics has it for the same mistake; GetMetricData has no code"
EXCUSED: dict[tuple[str, str], str] = {
    ("CreateStateMachine", "ServiceQuotaExceededException"): "a new machine has no version yet",
    ("CreateStateMachine", "StateMachineDoesNotExist"): "the machine was made in the same commit",
    ("CreateStateMachineAlias", "StateMachineDoesNotExist"): (
        "the machine was deleted between the look at its version and the alias"
    ),
    ("UpdateStateMachineAlias", "StateMachineDoesNotExist"): (
        "caught where the routing is read, and answered as ResourceNotFound"
    ),
    ("ListStateMachineVersions", "StateMachineDoesNotExist"): (
        "the model names no error for a machine that is not there; this one says it"
    ),
    ("StartSyncExecution", "ExecutionAlreadyExists"): "of Standard machines, which it refuses",
    ("StartSyncExecution", "ExecutionLimitExceeded"): "of Standard machines, which it refuses",
    ("GetMetricData", "InvalidParameterValue"): SAME_AS_STATISTICS,
    ("GetMetricData", "MissingParameter"): SAME_AS_STATISTICS,
    ("DescribeAlarms", "InvalidParameterCombination"): NO_CODE,
    ("PutMetricAlarm", "ConflictException"): (
        "of a form that began with another alarm; a call of the API names no revision"
    ),
    ("PutMetricAlarm", "InvalidParameterCombination"): NO_CODE,
    ("PutMetricAlarm", "InvalidParameterValue"): NO_CODE,
    ("PutMetricAlarm", "MissingParameter"): NO_CODE,
    ("SetAlarmState", "InvalidParameterValue"): NO_CODE,
    ("ListMetrics", "InvalidNextToken"): "GetMetricData has it for the same mistake",
    **{
        (action, "InvalidToken"): TRANSLATED
        for service in (services.CLOUDWATCH, services.EVENTS, services.LOGS)
        for action in service.handlers
        if action.startswith(("Describe", "Filter", "Get", "List"))
    },
}
"""(Action, code) -> why it can be in the code of an action whose model does not name it."""


class Reader(ast.NodeVisitor):
    """Reads what one definition mentions: names of ``console``, and error codes.

    Annotations do not count, nor do the classes that an ``except`` names.
    """

    def __init__(self, names: dict[str, str]) -> None:
        self.names = names
        self.mentioned: set[str] = set()
        self.codes: set[str] = set()

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        """Read what is done with an error."""
        for statement in node.body:
            self.visit(statement)

    def visit_arg(self, node: ast.arg) -> None:
        """Skip an annotated parameter."""

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        """Skip the annotation."""
        if node.value is not None:
            self.visit(node.value)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        """Skip the type of the result."""
        for child in (*node.decorator_list, node.args, *node.body):
            self.visit(child)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        """Note ``ErrorCode.X`` and ``module.name``."""
        if isinstance(node.value, ast.Name) and node.value.id == "ErrorCode":
            self.codes.add(node.attr)
        elif isinstance(node.value, ast.Name) and node.value.id in self.names:
            self.mentioned.add(f"{self.names[node.value.id]}.{node.attr}")
        self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        """Note a name of ``console``, and the code of an error class."""
        full = self.names.get(node.id, "")
        if full == f"console.errors.{node.id}" and node.id in CLASSES:
            self.codes.add(CLASSES[node.id])
        self.mentioned.add(full)


def module_of(path: Path) -> str:
    """Return the dotted name of a file."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def defined(statement: ast.stmt) -> list[str]:
    """Return the names that a statement of a module binds."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [statement.name]
    if isinstance(statement, ast.Assign | ast.AnnAssign):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        return [target.id for target in targets if isinstance(target, ast.Name)]
    return []


@cache
def graph() -> dict[str, Reader]:
    """Return each definition of ``console`` by its full name, with what it mentions."""
    readers: dict[str, Reader] = {}
    for path in (ROOT / "console").rglob("*.py"):
        module = module_of(path)
        if module == "console.errors" or "migrations" in path.parts:
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        names = {
            alias.asname or alias.name: f"{node.module}.{alias.name}"
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        for name, full in list(names.items()):  # what a package hands on
            readers.setdefault(f"{module}.{name}", Reader({})).mentioned.add(full)
        names |= {name: f"{module}.{name}" for node in tree.body for name in defined(node)}
        for statement in tree.body:
            reader = Reader(names)
            reader.visit(statement)
            for name in defined(statement):
                readers[f"{module}.{name}"] = reader
    return readers


def reached(start: str) -> Iterator[Reader]:
    """Yield a definition and all that it leads to."""
    seen, waiting = {start}, [start]
    while waiting:
        reader = graph().get(waiting.pop())
        if reader is None:
            continue
        yield reader
        waiting += reader.mentioned - seen
        seen |= reader.mentioned


def raised_beyond_the_model(service: services.ApiService, action: str) -> set[str]:
    """Return the codes in an operation's code that its model and the common errors do not name."""
    handler = service.handler(action)
    codes = {
        code
        for reader in reached(f"{handler.__module__}.{handler.__name__}")
        for code in reader.codes
    }
    model = {
        shape.metadata.get("error", {}).get("code", shape.name)
        for shape in service.operation(action).error_shapes
    }
    return codes - model - set(COMMON)


@pytest.mark.slow
@pytest.mark.parametrize("service", services.SERVICES, ids=lambda service: service.name)
def test_every_error_is_one_that_callers_know(service: services.ApiService) -> None:
    """Of its operation's model, of AWS's common errors, or with a reason."""
    beyond = {
        (action, code)
        for action in service.handlers
        for code in raised_beyond_the_model(service, action)
    }
    assert beyond - set(EXCUSED) == set()


def test_the_reader_follows_calls() -> None:
    """It finds errors that are raised several modules below an operation."""
    start = services.STATES.handler("StartExecution")
    codes = {
        code for reader in reached(f"{start.__module__}.{start.__name__}") for code in reader.codes
    }
    assert {"InvalidExecutionInput", "ExecutionLimitExceeded", "StateMachineDeleting"} <= codes


def test_no_reason_is_out_of_date() -> None:
    """Each excused error is in the code of its action and not in its model."""
    beyond = {
        (action, code)
        for service in services.SERVICES
        for action in service.handlers
        for code in raised_beyond_the_model(service, action)
    }
    assert {pair for pair in set(EXCUSED) - beyond if EXCUSED[pair] != TRANSLATED} == set()


def test_every_code_is_one_of_aws() -> None:
    """In the model of a service that is served, among its common errors, or of the protocol."""
    codes = {
        shape.metadata.get("error", {}).get("code", shape.name)
        for service in services.SERVICES
        for action in service.handlers
        for shape in service.operation(action).error_shapes
    }
    protocol = {
        ErrorCode.ExpiredTokenException: "an access key that has expired: of HTTP 403",
        ErrorCode.IncompleteSignatureException: "a signature without one of its parts",
        ErrorCode.InternalFailure: "an error of the server",
        ErrorCode.InvalidSignatureException: "a signature of another request or key",
        ErrorCode.MissingAuthenticationTokenException: "no signature",
        ErrorCode.RequestEntityTooLargeException: "a body beyond the limit",
        ErrorCode.ServiceUnavailable: "too much at once: a common error, of HTTP 503",
        ErrorCode.SerializationException: "a body that is not an object of the protocol",
        ErrorCode.UnknownOperationException: "an action that the service does not have",
        ErrorCode.UnrecognizedClientException: "an unknown access key",
        ErrorCode.MissingParameter: "CloudWatch: as its model's MissingRequiredParameterException",
    }
    assert set(ErrorCode) - codes - set(protocol) - set(COMMON) == set()


def test_the_service_model_says_how_an_error_is_answered() -> None:
    """A status that AWS publishes wins; a member that the error lacks is left out."""
    taken = ConflictException("taken", reason="WHY")
    assert services.CLOUDWATCH.error_answer(taken) == (
        409,
        {"__type": "ConflictException", "message": "taken"},
    )
    missing = ServiceError(ErrorCode.ResourceNotFound, "gone")
    assert services.CLOUDWATCH.error_answer(missing)[0] == 404
    assert services.STATES.error_answer(missing)[0] == 400
    wrong = ValidationException("wrong", reason="WHY")
    assert services.STATES.error_answer(wrong) == (
        400,
        {
            "__type": "com.amazon.coral.validate#ValidationException",
            "message": "wrong",
            "reason": "WHY",
        },
    )


def test_the_status_of_a_denied_call_is_that_of_its_protocol() -> None:
    """Services that speak JSON have one status for all that the caller did; REST has 403."""
    denied = ServiceError(ErrorCode.AccessDeniedException, "no")
    for service in (services.STATES, services.EVENTS, services.LOGS):
        assert service.error_answer(denied)[0] == 400, service.name
    assert rest_json._error_answer(services.SCHEDULER, denied)[0] == 403
