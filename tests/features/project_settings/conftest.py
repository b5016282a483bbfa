"""No test sees the settings or the quotas of another."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from console.config import quotas
from console.db import project_settings

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def _nothing_is_remembered() -> Iterator[None]:
    project_settings.forget_settings()
    quotas.forget()
    yield
    project_settings.forget_settings()
    quotas.forget()
