"""The errors of the server's API and pages, by AWS's error codes.

There is a class for each error that code catches; all others are ``ServiceError`` with a ``code``::

ServiceError                     a refused request, of any code ├── ProtocolError
refused before it reached an operation ├── ConflictException            changed by another person,
or in use ├── InvalidDefinition            has the diagnostics of the definition ├── InvalidToken
a nextToken or task token of another server, or forged ├── StateMachineDoesNotExist ├──
ThrottlingException          try again later └── ValidationException          a constraint is
violated

``console.store`` and ``console.access`` raise them. The API converts them to AWS's format
(``Service.error_answer``), with members and HTTP status from botocore's service model. Pages show
the message beside the field.
"""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar


class ErrorCode(StrEnum):
    """AWS's error codes, each with its meaning.

    Except for those of the protocol, each is in botocore's model of its service.
    """

    # Step Functions
    ActivityAlreadyExists = "ActivityAlreadyExists"  # with another encryption
    ActivityDoesNotExist = "ActivityDoesNotExist"
    ActivityLimitExceeded = "ActivityLimitExceeded"  # as many activities as the quota allows
    ActivityWorkerLimitExceeded = "ActivityWorkerLimitExceeded"  # too many polls of one activity
    ConflictException = "ConflictException"  # changed by another person, or in use
    ExecutionAlreadyExists = "ExecutionAlreadyExists"  # of that name, with another input
    ExecutionDoesNotExist = "ExecutionDoesNotExist"
    ExecutionLimitExceeded = "ExecutionLimitExceeded"  # as many open executions as allowed
    ExecutionNotRedrivable = "ExecutionNotRedrivable"  # running, succeeded, or too old
    InvalidArn = "InvalidArn"  # no ARN, or one of another kind
    InvalidDefinition = "InvalidDefinition"  # the definition has errors
    InvalidEncryptionConfiguration = "InvalidEncryptionConfiguration"  # contradicts itself
    InvalidExecutionInput = "InvalidExecutionInput"  # not JSON, or too large
    InvalidLoggingConfiguration = "InvalidLoggingConfiguration"  # contradicts itself
    InvalidName = "InvalidName"  # has characters or a length that AWS refuses
    InvalidOutput = "InvalidOutput"  # not JSON, or too large
    InvalidToken = "InvalidToken"  # a nextToken or task token that was not issued here
    MissingRequiredParameter = "MissingRequiredParameter"  # an update without a change
    ResourceNotFound = "ResourceNotFound"  # what the request refers to does not exist
    ServiceQuotaExceededException = "ServiceQuotaExceededException"  # of versions and aliases
    StateMachineAlreadyExists = "StateMachineAlreadyExists"  # of that name, but different
    StateMachineDeleting = "StateMachineDeleting"
    StateMachineDoesNotExist = "StateMachineDoesNotExist"
    StateMachineLimitExceeded = "StateMachineLimitExceeded"  # as many as the quota allows
    StateMachineTypeNotSupported = "StateMachineTypeNotSupported"  # Standard only, or Express only
    TaskDoesNotExist = "TaskDoesNotExist"
    TaskTimedOut = "TaskTimedOut"  # the task has ended already
    TooManyTags = "TooManyTags"
    ValidationException = "ValidationException"  # a constraint is violated
    # EventBridge and CloudWatch Logs
    InvalidEventPatternException = "InvalidEventPatternException"
    InvalidParameterException = "InvalidParameterException"  # bad, or not together with another
    LimitExceededException = "LimitExceededException"  # as many rules or targets as allowed
    ResourceAlreadyExistsException = "ResourceAlreadyExistsException"  # a log group of that name
    ResourceNotFoundException = "ResourceNotFoundException"  # a rule, event bus or log group
    # CloudWatch
    InvalidNextToken = "InvalidNextToken"  # not issued for this request
    InvalidParameterCombination = "InvalidParameterCombination"  # these do not go together
    InvalidParameterValue = "InvalidParameterValue"  # bad, or out of range
    LimitExceeded = "LimitExceeded"  # as many alarms as allowed
    MissingParameter = "MissingParameter"
    # every service: https://docs.aws.amazon.com/step-functions/latest/apireference/CommonErrors.html
    AccessDeniedException = "AccessDeniedException"  # the caller's role does not allow it
    ServiceUnavailable = "ServiceUnavailable"  # too many calls wait, or the database is out
    ThrottlingException = "ThrottlingException"  # more calls than the project's rate allows
    # the protocol
    ExpiredTokenException = "ExpiredTokenException"  # an access key after its expiry date
    IncompleteSignatureException = "IncompleteSignatureException"  # lacks a part
    InternalFailure = "InternalFailure"  # an error of this server
    InvalidSignatureException = "InvalidSignatureException"  # not of this request with this key
    MissingAuthenticationTokenException = "MissingAuthenticationTokenException"  # no signature
    RequestEntityTooLargeException = "RequestEntityTooLargeException"
    SerializationException = "SerializationException"  # not an object in JSON or CBOR
    UnknownOperationException = "UnknownOperationException"  # no such action, or not served
    UnrecognizedClientException = "UnrecognizedClientException"  # unknown or disabled access key


_HTTP_STATUS = {
    ErrorCode.AccessDeniedException: 403,
    ErrorCode.ConflictException: 409,
    ErrorCode.InternalFailure: 500,
    ErrorCode.RequestEntityTooLargeException: 413,
    ErrorCode.ServiceQuotaExceededException: 402,
    ErrorCode.ServiceUnavailable: 503,
}
"""Code -> HTTP status other than 400. botocore's models have it for CloudWatch only."""


NAME_ERRORS = frozenset({ErrorCode.InvalidName, ErrorCode.ExecutionAlreadyExists})
"""The errors of a start that concern the name of the execution."""


class ServiceError(Exception):
    """A refused request.

    ``code``: AWS's error code. ``message``: text for people, in AWS's words where known.
    ``reason``: the member ``reason`` of some of AWS's errors.
    """

    def __init__(self, code: ErrorCode, message: str, *, reason: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.reason = reason

    @property
    def status(self) -> int:
        """Return the HTTP status of an answer with this error."""
        return _HTTP_STATUS.get(self.code, 400)


class ProtocolError(ServiceError):
    """A request that never reaches an operation."""


class CodedError(ServiceError):
    """Base of the error classes with one fixed code."""

    CODE: ClassVar[ErrorCode]

    def __init__(self, message: str, *, reason: str | None = None) -> None:
        super().__init__(self.CODE, message, reason=reason)


class ConflictException(CodedError):
    """The resource was changed since the caller read it, or is in use."""

    CODE = ErrorCode.ConflictException


class InvalidToken(CodedError):
    """The nextToken or task token was not issued here."""

    CODE = ErrorCode.InvalidToken


class StateMachineDoesNotExist(CodedError):
    """There is no such state machine."""

    CODE = ErrorCode.StateMachineDoesNotExist


class ThrottlingException(CodedError):
    """There are more calls than the project's rate allows."""

    CODE = ErrorCode.ThrottlingException


class ValidationException(CodedError):
    """The request violates a constraint."""

    CODE = ErrorCode.ValidationException


class InvalidDefinition(CodedError):
    """A definition was refused. ``diagnostics``: ``engine.Diagnostic`` values, for pages."""

    CODE = ErrorCode.InvalidDefinition

    def __init__(self, message: str, diagnostics: tuple[object, ...] = ()) -> None:
        """``message``: ``Invalid State Machine Definition: '<CODE>: <text> at <pointer>, ...'``."""
        super().__init__(message)
        self.diagnostics = diagnostics
