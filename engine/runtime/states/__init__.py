"""What does each state type do when its turn comes, and when what it waited for arrives?

One small module a type: ``enter(turn, frame, state)``, and ``resume(turn, frame, state, message)``
where a state can wait.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.language import model
from engine.runtime.states import choice, fail, map_, parallel, pass_, succeed, task, wait

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from engine.runtime.run import Frame
    from engine.runtime.turn import Turn

ENTER: Mapping[type, Callable[[Turn, Frame, Any], None]] = {
    model.Pass: pass_.enter,
    model.Task: task.enter,
    model.Choice: choice.enter,
    model.Wait: wait.enter,
    model.Succeed: succeed.enter,
    model.Fail: fail.enter,
    model.Parallel: parallel.enter,
    model.Map: map_.enter,
}
