"""How does a Task of this server call its API?  By the same operations, without HTTP.

What HTTP would have checked - who asks, whether they may, what the service model says of the
parameters - is checked here in the same order and words.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from console import access
from console.awsapi import services, shapes
from console.awsapi.operations.call import Call, Later
from console.errors import AccessDeniedException
from console.store.pending import Pending

if TYPE_CHECKING:
    from console.own_api import Caller


def answer(caller: Caller, action: str, params: dict[str, Any]) -> Pending[dict[str, Any]]:
    """Answer an action of Step Functions, as ``own_api.answer`` says; may wait for the answer."""
    service = services.STATES
    operation, handler = service.operation(action), service.handler(action)
    if not caller.trusted:
        _authorize(caller, service.permission(action))
    shapes.check(operation, params)
    call = Call(action, params, caller.principal, caller.region, caller.actor, parent=caller.parent)
    found = handler(call)
    if isinstance(found, Later):
        found = found.now()
    return found if isinstance(found, Pending) else _known(found)


def _authorize(caller: Caller, permission: str) -> None:
    try:
        access.authorize(caller.principal, permission)
    except access.Denied as error:
        raise AccessDeniedException(str(error)) from None


def _known(found: dict[str, Any]) -> Pending[dict[str, Any]]:
    return Pending(lambda: found)
