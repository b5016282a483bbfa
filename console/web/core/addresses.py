"""Name the beginnings that the addresses of several rooms share."""

from __future__ import annotations

MACHINE = "machines/<str:machine_name>/"
"""The pages of one state machine."""
EXECUTION = f"{MACHINE}executions/<str:execution_name>/"
"""The pages of one execution."""
