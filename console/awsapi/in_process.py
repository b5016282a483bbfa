"""Call the API for a Task of this server: by the same operations, without HTTP.

What HTTP would have checked - who asks, whether they may, what the service model says of the
parameters - is checked here in the same order and words.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from console import access
from console.awsapi import services, shapes
from console.awsapi.operations.call import Call
from console.errors import ErrorCode, ServiceError

if TYPE_CHECKING:
    from console.own_api import Begun, Caller


def answer(caller: Caller, action: str, params: dict[str, Any]) -> Begun:
    """Begin an action of Step Functions, as ``own_api.answer`` says."""
    service = services.STATES
    operation = service.operation(action)
    service.handler(action)  # or there is no such action here, for nobody
    if not caller.trusted:
        _authorize(caller, service.permission(action))
    shapes.check_params(operation, params)
    who = caller.principal, caller.region, caller.actor, caller.parent
    return service.run(Call(action, params, *who, trusted=caller.trusted))


def _authorize(caller: Caller, permission: str) -> None:
    try:
        access.authorize(caller.principal, permission)
    except access.Denied as error:
        raise ServiceError(ErrorCode.AccessDeniedException, str(error)) from None
