"""Call this server's AWS API for a Task, by the same operations, without HTTP.

Caller, rights and parameters are checked in the same order and with the same errors as over HTTP.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from console import access
from console.awsapi import services, shapes
from console.awsapi.operations.call import Call
from console.errors import ErrorCode, ProtocolError, ServiceError

if TYPE_CHECKING:
    from console.own_api import Begun, Caller


_SERVICES = {service.name: service for service in (*services.SERVICES, services.SCHEDULER)}


def serves(service: str, action: str) -> bool:
    """Whether an operation of a service is served (``own_api.serves``)."""
    return service in _SERVICES and action in _SERVICES[service].handlers


def answer(caller: Caller, action: str, params: dict[str, Any]) -> Begun:
    """Begin an action of a service (``own_api.answer``)."""
    service = _SERVICES[caller.service]
    operation = service.operation(action)
    if not serves(caller.service, action):
        raise ProtocolError(
            ErrorCode.UnknownOperationException,
            f"This server does not serve {action} of '{caller.service}'; a target for "
            f"'{caller.service}' in targets.json sends its calls elsewhere",
        )
    if not caller.trusted:
        _authorize(caller, service.permission(action))
    shapes.check_params(operation, params)
    service.check_members(action, params)
    who = caller.principal, caller.region, caller.actor, caller.parent
    return service.run(Call(action, params, *who, trusted=caller.trusted))


def _authorize(caller: Caller, permission: str) -> None:
    try:
        access.authorize(caller.principal, permission)
    except access.Denied as error:
        raise ServiceError(ErrorCode.AccessDeniedException, str(error)) from None
