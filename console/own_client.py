"""A client of this server's own AWS API with the interface of a botocore client.

Tasks that call Step Functions or EventBridge use it without HTTP: parameters are converted to the
wire format, and answers and errors back, as botocore does it.
"""

from __future__ import annotations

import base64
import json
import uuid
from dataclasses import dataclass, replace
from email.utils import formatdate
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError, ParamValidationError
from botocore.parsers import create_parser
from botocore.utils import parse_to_aware_datetime
from botocore.validate import ParamValidator

from console import own_api
from console.errors import ServiceError
from console.integrations import names

if TYPE_CHECKING:
    from collections.abc import Callable

    from botocore.model import OperationModel

_PROTOCOL = "json"


@dataclass(frozen=True, slots=True)
class OwnClient:
    """Makes clients for services of this server for a ``caller`` (``integrations.Home``)."""

    caller: own_api.Caller

    def client(self, service: str, region: str) -> OwnClient:
        """Return a client for one service and region."""
        return OwnClient(replace(self.caller, service=service, region=region))

    def _make_api_call(self, name: str, sent: dict[str, Any]) -> dict[str, Any]:
        """Call an operation; return or raise the same as a botocore client."""
        model = names.service_model(self.caller.service).operation_model(name)
        params = wire_params(model, sent)
        return as_botocore(model, lambda: finish(own_api.answer(self.caller, name, params)))


def finish(begun: own_api.Begun) -> dict[str, Any]:
    """Return the answer of a begun operation; blocks this thread until there is one."""
    return begun if isinstance(begun, dict) else begun.result()


def wire_params(model: OperationModel, sent: dict[str, Any]) -> dict[str, Any]:
    """Convert parameters to the wire format of AWS JSON; raise ``ParamValidationError``.

    A missing required parameter was null: the operation itself checks that.
    """
    shape = model.input_shape
    if shape is None:
        return {}
    if all(name in sent for name in shape.required_members):
        report = ParamValidator().validate(sent, shape)
        if report.has_errors():
            raise ParamValidationError(report=report.generate_report())
    params: dict[str, Any] = _to_wire(shape, sent)
    return params


def _to_wire(shape: Any, value: Any) -> Any:
    """Convert a value to JSON: times to epoch seconds, bytes to Base64."""
    if shape.type_name == "structure":
        return {name: _to_wire(shape.members[name], member) for name, member in value.items()}
    if shape.type_name == "list":
        return [_to_wire(shape.member, item) for item in value]
    if shape.type_name == "map":
        return {key: _to_wire(shape.value, item) for key, item in value.items()}
    if shape.type_name == "timestamp":
        return parse_to_aware_datetime(value).timestamp()
    if shape.type_name == "blob":
        data = value.encode() if isinstance(value, str) else bytes(value)
        return base64.b64encode(data).decode()
    return value


def as_botocore(model: OperationModel, send: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Return the answer of ``send``, or raise its error, in botocore's form.

    Other exceptions pass unchanged, above all those of the database: the transaction is over then,
    and its caller may have to repeat it: 1. A starts a child of a name.  2. B does not find it.  3.
    A commits.  4. B's row is refused.
    """
    try:
        status, body = 200, send()
    except ServiceError as error:
        status, body = error.status, {"__type": error.code, "message": error.message}
    data = json.dumps(body).encode()
    headers = {
        "content-length": str(len(data)),
        "content-type": "application/x-amz-json-1.0",
        "date": formatdate(usegmt=True),
        "x-amzn-requestid": str(uuid.uuid4()),
    }
    shape = model.output_shape
    answer: dict[str, Any] = create_parser(_PROTOCOL).parse(
        {"body": data, "headers": headers, "status_code": status}, shape
    )
    if status != 200:  # noqa: PLR2004 - HTTP's OK
        raise ClientError(answer, model.name)
    return answer
