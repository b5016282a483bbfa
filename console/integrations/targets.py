"""Where does a call to an AWS service go?  Only where the operator has said.

``DATA/targets.json`` (or ``STEPYARD_TARGETS``): service -> ``{"endpoint_url", "region", "profile",
"access_key_id", "secret_access_key"}``, ``"*"`` for all others. Without an entry nothing is called:
a test must not reach somebody's real account by accident.
"""

from __future__ import annotations

import threading
from dataclasses import asdict
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import botocore.session
from botocore.config import Config
from django.conf import settings

if TYPE_CHECKING:
    from console.integrations.outcome import Home

_CONFIG = Config(
    retries={"max_attempts": 0},
    connect_timeout=10,
    read_timeout=60,
    max_pool_connections=64,
    parameter_validation=True,
    inject_host_prefix=False,
    s3={"addressing_style": "path"},
)
_OWN = "stepfunctions"
_making = threading.Lock()


class NoTargetError(Exception):
    """Nobody has said where calls to a service go."""


def client(service: str, home: Home | None, region: str) -> Any:
    """Return the client for botocore's service; raise ``NoTargetError``.

    Step Functions are here (``home``, in the ``region`` of the execution) unless named otherwise.
    """
    targets: dict[str, dict[str, str]] = settings.STEPYARD_TARGETS
    target = targets.get(service, targets.get("*"))
    if service == _OWN and service not in targets and home is not None:
        target = {**asdict(home), "region": region or settings.STEPYARD_REGION}
    if target is None:
        raise NoTargetError(
            f"No target is configured for the service '{service}': name its endpoint in "
            'targets.json in the data folder, or one for all services under "*"'
        )
    with _making:  # making clients is not safe in threads, using them is
        return _client(service, tuple(sorted(target.items())))


@lru_cache(maxsize=256)
def _client(service: str, target: tuple[tuple[str, str], ...]) -> Any:
    given = dict(target)
    session = botocore.session.Session(profile=given.get("profile"))
    return session.create_client(
        service,
        region_name=given.get("region", settings.STEPYARD_REGION),
        endpoint_url=given.get("endpoint_url"),
        aws_access_key_id=given.get("access_key_id"),
        aws_secret_access_key=given.get("secret_access_key"),
        config=_CONFIG,
    )
