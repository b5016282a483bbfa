"""Find the name of a project by the account in an ARN."""

from __future__ import annotations

import time

from console.models import Project

_ACCOUNT_AT = 4  # arn:aws:states:region:ACCOUNT:...
_KEPT_S = 5.0
_GRACE_S = 0.25
_known: dict[str, tuple[float, str]] = {}


def project_of(arn: str) -> str:
    """Return the name of the project of an ARN, "" if there is none.

    Cached for five seconds, because every call of a Task asks.
    """
    account = arn.split(":")[_ACCOUNT_AT] if arn.count(":") > _ACCOUNT_AT else ""
    remembered = _known.get(account)
    now = time.monotonic()
    if remembered is not None and remembered[0] > now:
        return remembered[1]
    if remembered is not None and now < remembered[0] + _GRACE_S:
        _known[account] = now + _GRACE_S, remembered[1]  # for other threads, while this one asks
    names = Project.objects.filter(account_id=account).values_list("name", flat=True)
    name = names.first() or ""
    if name:  # made-up accounts must not fill the memory
        _known[account] = (now + _KEPT_S, name)
    return name
