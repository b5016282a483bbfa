"""What can a Task call?  One module a service; copy one to add one and name it in ``REGISTRY``.

A module has ``call(task) -> Succeeded | Failed``. It runs outside any transaction and may take its
time. It sees the engine's door only.
"""

from __future__ import annotations

from console.integrations import function
from console.integrations.outcome import Failed, Outcome, Task

REGISTRY = {"lambda": function.call}


def call(task: Task) -> Outcome:
    """Call what a task names and return its outcome; a service nobody knows is a failed task."""
    integration = REGISTRY.get("lambda" if task.kind == "lambda" else task.service)
    if integration is None:
        cause = (
            f"The service integration '{task.resource}' cannot be called from here yet: "
            f"only Lambda function ARNs and activities can."
        )
        return Failed("States.TaskFailed", cause)
    return integration(task)


__all__ = ["REGISTRY", "Failed", "Outcome", "Task", "call"]
