"""The inputs of a Map's children are kept until they start, also after a crash."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from console.db import clock
from console.db.writer import write
from console.models import MapItem, MapRun
from console.store.map_runs import map_items
from tests.console.store.helpers import WAIT, create, start

if TYPE_CHECKING:
    from collections.abc import Iterator

    from console.models import Project


@pytest.fixture
def run(project: Project) -> MapRun:
    """A Map Run whose items are being read."""
    parent = start(create(project, WAIT))
    return MapRun.objects.create(
        parent=parent,
        task=1,
        arn="arn:aws:states:us-east-1:123456789012:mapRun:m/l:1",
        definition=parent.definition,
        total=0,
        reading=True,
        start_ms=clock.now_ms(),
    )


def test_reading_is_done_anew_after_a_crash(run: MapRun) -> None:
    """What the first attempt has written is dropped, and the run counts what is there."""

    def cut_short() -> Iterator[str]:
        yield from (str(n) for n in range(map_items.AT_ONCE + 10))
        raise ConnectionError("gone")

    with pytest.raises(ConnectionError):
        map_items.store_items(run.pk, cut_short())
    assert MapItem.objects.filter(map_run=run).count() == map_items.AT_ONCE
    run.refresh_from_db()
    assert (run.reading, run.total) == (True, 0)
    map_items.store_items(run.pk, (str(n) for n in range(map_items.AT_ONCE + 10)))
    run.refresh_from_db()
    assert (run.reading, run.total) == (False, map_items.AT_ONCE + 10)


def test_inputs_are_taken_once_and_in_order(run: MapRun) -> None:
    """Their rows go with the commit that starts the children."""
    map_items.store_items(run.pk, iter("abcde"))
    assert write(lambda: map_items.take_items(run.pk, 0, 2)) == [(0, "a"), (1, "b")]
    assert write(lambda: map_items.take_items(run.pk, 2, 100)) == [(2, "c"), (3, "d"), (4, "e")]
    assert write(lambda: map_items.take_items(run.pk, 0, 100)) == []
