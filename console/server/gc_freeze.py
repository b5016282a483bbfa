"""Exclude objects that live until the process ends from garbage collection."""

from __future__ import annotations

import gc


def spare_collections() -> None:
    """Freeze all imported objects (``gc.freeze``): they live as long as the process.

    A full collection visits every object. Reading 25,000 events triggers several collections, which
    took as long as the reading itself.
    """
    gc.collect()
    gc.freeze()
