"""What may the service refuse, and with which AWS error code?

Raised by ``console.store`` and ``console.access``; the AWS edge turns them into the wire shape, pages show
the message beside the field. ``code`` is the shape's name in the service model.
"""

from __future__ import annotations


class ServiceError(Exception):
    """A refused request. ``code``: AWS error code; ``message``: AWS's words; ``status``: HTTP status."""

    code = "ValidationException"
    status = 400

    def __init__(self, message: str, *, reason: str | None = None) -> None:
        """``reason``: the ``reason`` member that some AWS errors carry."""
        super().__init__(message)
        self.message = message
        self.reason = reason


def _error(name: str, status: int = 400) -> type[ServiceError]:
    return type(name, (ServiceError,), {"code": name, "status": status, "__module__": __name__})


ValidationException = _error("ValidationException")
InvalidArn = _error("InvalidArn")
InvalidName = _error("InvalidName")
InvalidToken = _error("InvalidToken")
InvalidOutput = _error("InvalidOutput")
InvalidExecutionInput = _error("InvalidExecutionInput")
InvalidLoggingConfiguration = _error("InvalidLoggingConfiguration")
InvalidTracingConfiguration = _error("InvalidTracingConfiguration")
InvalidEncryptionConfiguration = _error("InvalidEncryptionConfiguration")
MissingRequiredParameter = _error("MissingRequiredParameter")
ConflictException = _error("ConflictException", 409)
ServiceQuotaExceededException = _error("ServiceQuotaExceededException", 402)
ResourceNotFound = _error("ResourceNotFound")
StateMachineAlreadyExists = _error("StateMachineAlreadyExists")
StateMachineDoesNotExist = _error("StateMachineDoesNotExist")
StateMachineDeleting = _error("StateMachineDeleting")
StateMachineLimitExceeded = _error("StateMachineLimitExceeded")
StateMachineTypeNotSupported = _error("StateMachineTypeNotSupported")
ExecutionAlreadyExists = _error("ExecutionAlreadyExists")
ExecutionDoesNotExist = _error("ExecutionDoesNotExist")
ExecutionLimitExceeded = _error("ExecutionLimitExceeded")
ExecutionNotRedrivable = _error("ExecutionNotRedrivable")
ActivityAlreadyExists = _error("ActivityAlreadyExists")
ActivityDoesNotExist = _error("ActivityDoesNotExist")
ActivityLimitExceeded = _error("ActivityLimitExceeded")
TaskDoesNotExist = _error("TaskDoesNotExist")
TaskTimedOut = _error("TaskTimedOut")
TooManyTags = _error("TooManyTags")
AccessDeniedException = _error("AccessDeniedException", 403)


class InvalidDefinition(ServiceError):
    """A definition was refused; ``diagnostics`` are ``engine.Diagnostic`` values for the page's list."""

    code = "InvalidDefinition"

    def __init__(self, message: str, diagnostics: tuple[object, ...] = ()) -> None:
        """Message in AWS's form: ``Invalid State Machine Definition: '<CODE>: <text> at <pointer>, ...'``."""
        super().__init__(message)
        self.diagnostics = diagnostics
