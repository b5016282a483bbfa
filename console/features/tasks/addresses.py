"""The addresses of activities."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from django.urls import reverse

from console.models import Activity

if TYPE_CHECKING:
    from django.db.models import Manager

    from console.web.core.scope import Scope

_ARN = re.compile(r"arn:aws[a-z-]*:states:([a-z0-9-]+):\d{12}:activity:([^:]+)")


def activity_address(_scope: Scope, arn: str) -> str:
    """Return the URL of an activity's page, "" for other ARNs."""
    match = _ARN.fullmatch(arn)
    return f"{reverse('activity', args=[match[2]])}?region={match[1]}" if match else ""


def objects_with_page() -> dict[str, Manager[Any]]:
    """Return kind of ARN -> manager of the activities."""
    return {"activity": Activity.objects}
