"""Exclude objects that live until the process ends from garbage collection."""

from __future__ import annotations

import gc


def spare_collections() -> None:
    """Freeze all imported objects (``gc.freeze``): they live as long as the process.

    A full collection goes through every object there is. Reading 25,000 events makes several of
    them necessary, which took as long as reading.
    """
    gc.collect()
    gc.freeze()
