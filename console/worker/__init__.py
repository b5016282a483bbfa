"""Who makes executions go on?"""

from __future__ import annotations

from console.worker.embedded import Embedded

__all__ = ["Embedded"]
