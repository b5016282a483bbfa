"""Hide task tokens on pages, except where a person asked to see one."""

from __future__ import annotations

from django.conf import settings

import engine

HIDDEN = "(task token)"


def hide_tokens(text: str, execution_arn: str, task: int) -> str:
    """Return a payload of a task's ...Scheduled event without its token."""
    return text.replace(engine.task_token(settings.STEPYARD_TOKEN_KEY, execution_arn, task), HIDDEN)
