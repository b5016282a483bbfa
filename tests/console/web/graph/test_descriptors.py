"""Child processes are asked over pipes, also by a server that has more than 1,024 connections.

``select.select`` refuses descriptors above 1,023.
"""

from __future__ import annotations

import os
import resource
from typing import TYPE_CHECKING

import pytest

from console.web.graph.layout_pool import LayoutChild, LayoutPool
from engine.data import jsonata_pool

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def descriptors() -> Iterator[None]:
    """Hold so many files open that every further one has a number above 1,024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 4096)), hard))
    held = [os.open(os.devnull, os.O_RDONLY) for _ in range(1_100)]
    yield
    for descriptor in held:
        os.close(descriptor)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_server_with_many_descriptors_lays_out(descriptors: None) -> None:
    """A busy server has more than 1,024 connections; ``select`` knows no descriptor above that."""
    del descriptors
    pool = LayoutPool([LayoutChild()])
    try:
        with pool.session() as session:
            assert session.lay_out('digraph{a->b[id="e0"]}')["nodes"].keys() == {"a", "b"}
    finally:
        pool.end()


def test_a_server_with_many_descriptors_evaluates(descriptors: None) -> None:
    """The children that evaluate JSONata are asked over pipes, too."""
    del descriptors
    pool = jsonata_pool.Pool(1)
    try:
        assert pool.evaluate("1 + 1", {}, 0)[1] == 2
    finally:
        pool.end()
