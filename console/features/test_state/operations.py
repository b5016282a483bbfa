"""The API action TestState."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from console.awsapi.members import reads
from console.errors import ValidationException
from console.features.test_state import state

if TYPE_CHECKING:
    from collections.abc import Callable

    from console.awsapi.operations.call import Call


@reads(
    "definition roleArn input inspectionLevel revealSecrets variables stateName context "
    "mock.result mock.errorOutput.error mock.errorOutput.cause mock.fieldValidationMode "
    "stateConfiguration.retrierRetryCount stateConfiguration.errorCausedByState "
    "stateConfiguration.mapIterationFailureCount stateConfiguration.mapItemReaderData"
)
def try_state(call: Call) -> dict[str, Any]:
    """TestState. A context object needs a mock here; pages may use one without."""
    if call.params.get("context") and call.params.get("mock") is None:
        msg = "TestState does not support Context when a mock is not specified."
        raise ValidationException(msg)
    return state.try_state(call.principal, call.region, call.params, call.actor)


HANDLERS: dict[str, Callable[[Call], dict[str, Any]]] = {"TestState": try_state}
