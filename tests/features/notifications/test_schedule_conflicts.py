"""A schedule that is deleted while a form of it is saved is deleted, not an error of the server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.http import Http404

from console.features.notifications.web import conflicts
from console.models import EventRule

if TYPE_CHECKING:
    from console.models import Project


def test_a_schedule_whose_target_is_gone_is_deleted(project: Project) -> None:
    """Its targets are read after its row; both were deleted between the two."""
    row = EventRule.objects.create(project=project, region="us-east-1", name="s", created_ms=1)
    for _ in range(2):
        with pytest.raises(Http404):
            conflicts.schedule_conflict(row)
        EventRule.objects.filter(pk=row.pk).delete()
