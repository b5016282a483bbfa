"""Hide task tokens on pages, unless a person asked to see one."""

from __future__ import annotations

from django.conf import settings

import engine

HIDDEN = "(task token)"
_LENGTH = len(engine.task_token(b"", "", 0))


def hide_tokens(text: str, execution_arn: str, task: int) -> str:
    """Return the payload of a ...Scheduled event without its task token."""
    if len(text) < _LENGTH:  # most events of a Map: no token is computed for them
        return text
    return text.replace(
        engine.task_token(settings.STATEYARD_TOKEN_KEY, execution_arn, task), HIDDEN
    )
