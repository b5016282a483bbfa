"""Expect that the service refuses something with one of AWS's error codes."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from console.errors import ServiceError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from console.errors import ErrorCode


@contextmanager
def raises_code(
    code: ErrorCode, match: str | None = None
) -> Iterator[pytest.ExceptionInfo[ServiceError]]:
    """Fail unless the block is refused with a code; ``match``: as in pytest.raises."""
    with pytest.raises(ServiceError, match=match) as caught:
        yield caught
    assert caught.value.code == code
