"""Store and return a state machine's encryptionConfiguration; nothing is encrypted (no KMS)."""

from __future__ import annotations

import json
from typing import Any

from console.errors import ErrorCode, ServiceError

_OWN_KEY = {"type": "AWS_OWNED_KEY"}
_REUSE_S = 300  # AWS: how long a data key is used again unless said otherwise


def encryption_as_text(configuration: dict[str, Any] | None) -> str:
    """Return a configuration for the database, "" for the default.

    Raise InvalidEncryptionConfiguration.
    """
    if not configuration or configuration == _OWN_KEY:
        return ""
    own = configuration.get("type") == "AWS_OWNED_KEY"
    if own and (configuration.get("kmsKeyId") or configuration.get("kmsDataKeyReusePeriodSeconds")):
        raise _invalid("a key may only be given for the type CUSTOMER_MANAGED_KMS_KEY")
    if not own and not configuration.get("kmsKeyId"):
        raise _invalid("CUSTOMER_MANAGED_KMS_KEY needs a kmsKeyId")
    return json.dumps({"kmsDataKeyReusePeriodSeconds": _REUSE_S, **configuration}, sort_keys=True)


def encryption_members(text: str) -> dict[str, Any]:
    """Return a stored configuration in the API's form."""
    members: dict[str, Any] = json.loads(text) if text else _OWN_KEY
    return members


def _invalid(problem: str) -> ServiceError:
    return ServiceError(
        ErrorCode.InvalidEncryptionConfiguration, f"Invalid Encryption Configuration: {problem}"
    )
