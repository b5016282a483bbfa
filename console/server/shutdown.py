"""Signal to waiting requests that the server shuts down."""

from __future__ import annotations

import threading

SHUTTING_DOWN = threading.Event()
"""Set when the server shuts down: waiting calls must be answered within one or two seconds."""
