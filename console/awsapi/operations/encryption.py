"""Store and return AWS's encryption configuration; this server has no KMS."""

from __future__ import annotations

import json
from typing import Any

from console.errors import ErrorCode, ServiceError

_OWN_KEY = {"type": "AWS_OWNED_KEY"}
_REUSE_S = 300  # AWS: how long a data key is used again unless said otherwise


def encryption_as_text(given: dict[str, Any] | None) -> str:
    """Return a configuration as it is kept, "" for the default.

    Raise InvalidEncryptionConfiguration.
    """
    if not given or given == _OWN_KEY:
        return ""
    own = given.get("type") == "AWS_OWNED_KEY"
    if own and (given.get("kmsKeyId") or given.get("kmsDataKeyReusePeriodSeconds")):
        raise _invalid("a key may only be given for the type CUSTOMER_MANAGED_KMS_KEY")
    if not own and not given.get("kmsKeyId"):
        raise _invalid("CUSTOMER_MANAGED_KMS_KEY needs a kmsKeyId")
    return json.dumps({"kmsDataKeyReusePeriodSeconds": _REUSE_S, **given}, sort_keys=True)


def encryption_members(kept: str) -> dict[str, Any]:
    """Return what was kept as the service answers it."""
    found: dict[str, Any] = json.loads(kept) if kept else _OWN_KEY
    return found


def _invalid(what: str) -> ServiceError:
    return ServiceError(
        ErrorCode.InvalidEncryptionConfiguration, f"Invalid Encryption Configuration: {what}"
    )
