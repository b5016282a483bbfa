"""Which errors does the edge itself raise?  Those of the wire, before any operation is reached."""

from __future__ import annotations

from console.errors import ServiceError


class ProtocolError(ServiceError):
    """A request that never reaches an operation."""


class SerializationException(ProtocolError):
    """The body is not a JSON object in UTF-8."""

    code = "SerializationException"


class RequestTooLarge(ProtocolError):
    """The body is larger than AWS takes."""

    code = "RequestEntityTooLargeException"
    status = 413


class UnknownOperation(ProtocolError):
    """The service model has no such action, or it is not served."""

    code = "UnknownOperationException"


class MissingAuthenticationToken(ProtocolError):
    """There is no signature."""

    code = "MissingAuthenticationTokenException"


class IncompleteSignature(ProtocolError):
    """The signature lacks a part, or does not cover what it must."""

    code = "IncompleteSignatureException"


class InvalidSignature(ProtocolError):
    """The signature is not the one that this request with this key would have."""

    code = "InvalidSignatureException"


class UnrecognizedClient(ProtocolError):
    """The access key is unknown, disabled, or its session token was not issued here."""

    code = "UnrecognizedClientException"


class InternalFailure(ProtocolError):
    """Ours."""

    code = "InternalFailure"
    status = 500
