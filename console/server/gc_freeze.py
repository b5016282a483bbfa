"""Exclude objects that live until the process ends from garbage collection."""

from __future__ import annotations

import gc


def spare_collections() -> None:
    """Let the garbage collector never look again at what was imported: it stays to the end.

    A full collection goes through every object there is. Reading 25,000 events makes several of
    them necessary, which took as long as reading.
    """
    gc.collect()
    gc.freeze()
