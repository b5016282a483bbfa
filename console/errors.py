"""What may the service refuse, and with which AWS error code?

Raised by ``console.store`` and ``console.access``; the AWS edge turns them into the wire shape,
pages show the message beside the field. ``code`` is the shape's name in the service model.
"""

from __future__ import annotations


class ServiceError(Exception):
    """A refused request. ``code``: AWS error code; ``message``: AWS's words.

    ``status``: HTTP status.
    """

    code = "ValidationException"
    status = 400

    def __init__(self, message: str, *, reason: str | None = None) -> None:
        """``reason``: the ``reason`` member that some AWS errors carry."""
        super().__init__(message)
        self.message = message
        self.reason = reason


class ValidationException(ServiceError):
    """The request violates a constraint."""

    code = "ValidationException"


class InvalidArn(ServiceError):
    """The text is no ARN, or not of this kind."""

    code = "InvalidArn"


class InvalidName(ServiceError):
    """The name has characters or a length that AWS refuses."""

    code = "InvalidName"


class InvalidToken(ServiceError):
    """The nextToken or task token is not one of ours."""

    code = "InvalidToken"


class InvalidOutput(ServiceError):
    """The output is not JSON."""

    code = "InvalidOutput"


class InvalidExecutionInput(ServiceError):
    """The input is not JSON, or too large."""

    code = "InvalidExecutionInput"


class InvalidLoggingConfiguration(ServiceError):
    """The logging configuration contradicts itself."""

    code = "InvalidLoggingConfiguration"


class InvalidTracingConfiguration(ServiceError):
    """The tracing configuration contradicts itself."""

    code = "InvalidTracingConfiguration"


class InvalidEncryptionConfiguration(ServiceError):
    """The encryption configuration contradicts itself."""

    code = "InvalidEncryptionConfiguration"


class MissingRequiredParameter(ServiceError):
    """Nothing to change was given."""

    code = "MissingRequiredParameter"


class ConflictException(ServiceError):
    """Somebody changed it meanwhile, or it is in use."""

    code = "ConflictException"
    status = 409


class ServiceQuotaExceededException(ServiceError):
    """There are as many as there may be."""

    code = "ServiceQuotaExceededException"
    status = 402


class ResourceNotFound(ServiceError):
    """What the request refers to is not there."""

    code = "ResourceNotFound"


class StateMachineAlreadyExists(ServiceError):
    """There is another machine of that name."""

    code = "StateMachineAlreadyExists"


class StateMachineDoesNotExist(ServiceError):
    """There is no such machine."""

    code = "StateMachineDoesNotExist"


class StateMachineDeleting(ServiceError):
    """The machine is being deleted."""

    code = "StateMachineDeleting"


class StateMachineLimitExceeded(ServiceError):
    """There are as many machines as there may be."""

    code = "StateMachineLimitExceeded"


class StateMachineTypeNotSupported(ServiceError):
    """Not for this type of machine."""

    code = "StateMachineTypeNotSupported"


class ExecutionAlreadyExists(ServiceError):
    """There is another execution of that name."""

    code = "ExecutionAlreadyExists"


class ExecutionDoesNotExist(ServiceError):
    """There is no such execution."""

    code = "ExecutionDoesNotExist"


class ExecutionLimitExceeded(ServiceError):
    """There are as many open executions as there may be."""

    code = "ExecutionLimitExceeded"


class ThrottlingException(ServiceError):
    """More calls than the project's rate allows."""

    code = "ThrottlingException"


class ActivityWorkerLimitExceeded(ServiceError):
    """So many workers poll one activity."""

    code = "ActivityWorkerLimitExceeded"


class ExecutionNotRedrivable(ServiceError):
    """The execution cannot be redriven."""

    code = "ExecutionNotRedrivable"


class ActivityAlreadyExists(ServiceError):
    """There is another activity of that name."""

    code = "ActivityAlreadyExists"


class ActivityDoesNotExist(ServiceError):
    """There is no such activity."""

    code = "ActivityDoesNotExist"


class ActivityLimitExceeded(ServiceError):
    """There are as many activities as there may be."""

    code = "ActivityLimitExceeded"


class TaskDoesNotExist(ServiceError):
    """No task has this token."""

    code = "TaskDoesNotExist"


class TaskTimedOut(ServiceError):
    """The task is closed already."""

    code = "TaskTimedOut"


class TooManyTags(ServiceError):
    """There are as many tags as there may be."""

    code = "TooManyTags"


class AccessDeniedException(ServiceError):
    """The caller's role does not allow it."""

    code = "AccessDeniedException"
    status = 403


class InvalidEventPatternException(ServiceError):
    """The text is no event pattern."""

    code = "InvalidEventPatternException"


class ResourceNotFoundException(ServiceError):
    """There is no such rule or event bus."""

    code = "ResourceNotFoundException"


class LimitExceededException(ServiceError):
    """There are as many rules or targets as there may be."""

    code = "LimitExceededException"


class InvalidDefinition(ServiceError):
    """A definition was refused.

    ``diagnostics`` are ``engine.Diagnostic`` values for the page's list.
    """

    code = "InvalidDefinition"

    def __init__(self, message: str, diagnostics: tuple[object, ...] = ()) -> None:
        """Message in AWS's form.

        ``Invalid State Machine Definition: '<CODE>: <text> at <pointer>, ...'``.
        """
        super().__init__(message)
        self.diagnostics = diagnostics
