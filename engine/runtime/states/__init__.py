"""Run the eight state types of ASL, one module for each.

``enter(turn, frame, state)`` does the work of a state when its frame's turn comes.
``resume(turn, frame, state, message)`` continues after the state has waited; only Task, Wait and
distributed Map have it. Both raise ``StatesError`` for errors that Retry and Catch may handle.

To add a state type: add its class to ``engine.language.model``, its fields to
``engine.language.fields``, its reader to ``engine.language.states``, a module here, and a line to
the table below.
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
