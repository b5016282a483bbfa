"""Signal to waiting requests that the server shuts down."""

from __future__ import annotations

import threading

SHUTTING_DOWN = threading.Event()
"""Set when the server shuts down: who waits is to be answered within a second or two."""
