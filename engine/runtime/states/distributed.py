"""The distributed Map state: each item, or batch of items, becomes a child execution.

The engine computes the inputs of the children and how many of them may fail. The caller runs them,
and reports one outcome for the whole Map Run, in the messages of a task. So for the engine a
distributed Map is a task of the kind MAP, and its frame waits in the phase TASK.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import msgspec

from engine.data.expression import EvaluationScope, Json
from engine.data.result_types import wrong_number_error
from engine.errors import DATA_LIMIT_EXCEEDED, InterpreterError, StatesError
from engine.language.model import QueryLanguage, TaskKind
from engine.runtime import commands, fault_strikes, flow, messages
from engine.runtime.context import context_object
from engine.runtime.payload import Payload, ensure_within_limit
from engine.runtime.run import FramePhase
from engine.runtime.states import map_items
from engine.runtime.states.map_items import DatasetItem
from engine.runtime.states.numbers import LARGEST, as_float, is_whole_number
from engine.runtime.turn import Turn

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from engine.data.expression import Expression
    from engine.language.model import Distributed, Machine, Map
    from engine.runtime.messages import Message
    from engine.runtime.run import Frame, Moment, Run


def enter(turn: Turn, frame: Frame, state: Map, extra: Distributed) -> None:
    """Write MapStateStarted and MapRunStarted, and ask the caller to run the children."""
    faults = None if turn.faults is None else fault_strikes.child_faults(turn, frame, state)
    value = flow.apply_input_path(turn, frame, state.data).value
    limit = map_items.evaluate_concurrency(turn, frame, state, value)
    items = None if extra.item_reader else map_items.evaluate_items(turn, frame, state, value)
    frame = turn.emit(frame, "MapStateStarted", {"length": len(items or ())})
    count, percentage = tolerated_failures(turn, frame, state, extra, value)
    settings: dict[str, Any] = {
        "concurrency": limit,
        "tolerated_count": count,
        "tolerated_percentage": percentage,
    }
    # The inputs are made before MapRunStarted: if ItemSelector fails, AWS makes no Map Run, and the
    # history has no event of one.
    if extra.item_reader is not None:
        settings["reader"] = _reader_settings(turn, frame, state, value)
    else:
        inputs = map(Payload.of, _make_inputs(turn, frame, state, items or []))
        settings["inputs"] = [ensure_within_limit(part, state.name).value for part in inputs]
    if extra.result_writer is not None:
        settings["writer"] = _writer_settings(turn, frame, extra.result_writer, value)
    if faults is not None:
        settings["faults"] = msgspec.to_builtins(faults)
    arn = _map_run_arn(turn, extra)
    frame = turn.emit(frame, "MapRunStarted", {"mapRunArn": arn})
    frame = turn.keep(frame, started_event=frame.cursor, map_run=arn)
    # The number of the task is that of MapRunStarted: a Map Run has no ...Scheduled event.
    turn.command(_make_command(frame, state, arn, settings))
    turn.keep(frame, phase=FramePhase.TASK, waits_for=frame.cursor)


def child_inputs(
    machine: Machine, run: Run, task: int, items: Iterable[Json], moment: Moment
) -> Iterator[str]:
    """Yield the inputs (JSON texts) of a Map Run's children, for items read by the caller.

    ``task``: the number of the Map's task. ``items``: values or ``DatasetItem``. Raise
    ``StatesError`` for an item that cannot be made an input, ``KeyError`` if no frame waits for the
    task.
    """
    turn = Turn(machine, run, moment, 0)
    waiting = {
        value.waits_for: value for value in turn.frames.values() if value.phase is FramePhase.TASK
    }
    frame = waiting[task]
    state: Any = turn.state(frame)
    for value in _make_inputs(turn, frame, state, items):
        yield ensure_within_limit(Payload.of(value), state.name).text


def resume(turn: Turn, frame: Frame, state: Map, message: Message) -> None:
    """Process the outcome of the Map Run."""
    if isinstance(message, messages.TaskSucceeded):
        # No event follows these two: the previous event of MapStateExited is MapRunStarted.
        succeeded = turn.record("MapRunSucceeded", frame.cursor, None, frame.state)
        turn.record("MapStateSucceeded", succeeded, None, frame.state)
        frame = turn.keep(frame, phase=FramePhase.READY, waits_for=0, map_run="")
        flow.complete(
            turn, frame, state, state.data, ensure_within_limit(Payload(message.output), state.name)
        )
    elif isinstance(message, messages.TaskFailed):
        error = StatesError(message.error, message.cause)
        # The results together were too large, and running children again would not help. So the
        # Map Run is forgotten, and a redrive begins another one.
        if error.name == DATA_LIMIT_EXCEEDED:
            frame = turn.keep(frame, map_run="")
        _fail_map_run(turn, frame, error)


def redrive(turn: Turn, frame: Frame) -> None:
    """Continue the Map Run: its children that did not succeed run again."""
    task = frame.started_event
    details = {"mapRunArn": frame.map_run, "redriveCount": turn.about["redrive_count"]}
    frame = turn.emit(frame, "MapRunRedriven", details)
    turn.command(commands.RedriveMapRun(task))
    turn.keep(frame, phase=FramePhase.TASK, waits_for=task)


def _fail_map_run(turn: Turn, frame: Frame, error: StatesError) -> None:
    texts = {"error": error.name, "cause": error.cause}
    present = {key: value for key, value in texts.items() if value is not None}
    frame = turn.emit(frame, "MapRunFailed", present)
    turn.keep(frame, phase=FramePhase.READY, waits_for=0)
    raise error


def _reader_settings(turn: Turn, frame: Frame, state: Map, value: Json) -> dict[str, Any]:
    """Return the location of the items: the evaluated ItemReader."""
    scope = flow.evaluation_scope(turn, frame, value)
    reader: Any = state.distributed and state.distributed.item_reader
    config = {**reader.get("ReaderConfig", {})}
    if "MaxItems" in config:
        config["MaxItems"] = _max_items(state, config["MaxItems"], scope)
    return {
        "resource": reader["Resource"],
        "arguments": _evaluate_arguments(reader, scope),
        "config": config,
    }


def _max_items(state: Map, expression: Expression, scope: EvaluationScope) -> int:
    value = expression.evaluate(scope)
    if not is_whole_number(value):
        allowed = "a whole number"
        cause = f"MaxItems: got {Payload.of(value).text}, wanted {allowed}"
        field = "ItemReader/ReaderConfig/MaxItems"
        raise _value_error(state, expression, field, value, allowed, cause)
    return int(value)


def _value_error(
    state: Map, expression: Expression, field: str, got: Json, allowed: str, cause: str
) -> InterpreterError:
    """Return the error of a wrong value; ``cause``: of one that is no result of JSONata."""
    if state.language is QueryLanguage.JSONATA:
        return wrong_number_error(expression, field, got, allowed)
    return InterpreterError(cause)


def _writer_settings(turn: Turn, frame: Frame, writer: Any, value: Json) -> dict[str, Any]:
    """Return the location and format of the results: the evaluated ResultWriter."""
    arguments = _evaluate_arguments(writer, flow.evaluation_scope(turn, frame, value))
    config = writer.get("WriterConfig", {})
    return {"resource": writer.get("Resource", ""), "arguments": arguments, "config": config}


def _evaluate_arguments(part: Any, scope: EvaluationScope) -> Any:
    template = part.get("Arguments") or part.get("Parameters")
    return {} if template is None else template.evaluate(scope)


def _map_run_arn(turn: Turn, extra: Distributed) -> str:
    """Return the Map Run's ARN; a Map without Label gets a random one, as on AWS."""
    machine = str(turn.about["state_machine_arn"]).replace(":stateMachine:", ":mapRun:", 1)
    # Both are always drawn: whether a Label is given must not shift what is drawn after them.
    drawn = [str(uuid.UUID(int=turn.rng().getrandbits(128), version=4)) for _ in range(2)]
    return f"{machine}/{extra.label or drawn[0]}:{drawn[1]}"


def _make_command(frame: Frame, state: Map, arn: str, settings: dict[str, Any]) -> commands.RunTask:
    where = [*([name, branch] for name, branch in frame.path), [state.name, 0]]
    return commands.RunTask(
        task=frame.cursor,
        kind=TaskKind.MAP,
        resource=arn,
        state=state.name,
        input=Payload.of({**settings, "path": where}).text,
        attempt=frame.retry_count,
        entered_event=frame.entered_event,
    )


# -- the inputs of the children --------------------------------------------------------------------


def _make_inputs(turn: Turn, frame: Frame, state: Map, items: Iterable[Json]) -> Iterator[Json]:
    """Yield the input of each child: the items, selected and batched."""
    value = flow.apply_input_path(turn, frame, state.data).value
    return apply_item_batcher(
        turn, frame, state, value, apply_item_selector(turn, frame, state, value, items)
    )


def apply_item_selector(
    turn: Turn, frame: Frame, state: Map, value: Json, items: Iterable[Json]
) -> Iterator[Json]:
    """Yield each item, with ItemSelector applied; ``value``: the Map's input.

    ``items``: values, or ``DatasetItem`` for items with a key or a source.
    """
    for index, entry in enumerate(items):
        item = entry if isinstance(entry, DatasetItem) else DatasetItem(entry)
        if state.selector is None:
            yield item.as_input()
        else:
            yield state.selector.evaluate(_item_scope(turn, frame, value, item.as_context(index)))


def apply_item_batcher(
    turn: Turn, frame: Frame, state: Map, value: Json, items: Iterable[Json]
) -> Iterator[Json]:
    """Yield the batches of ItemBatcher; without ItemBatcher, yield the items."""
    batcher = state.distributed and state.distributed.item_batcher
    return _make_batches(turn, frame, state, value, items) if batcher else iter(items)


def _item_scope(turn: Turn, frame: Frame, value: Json, entry: dict[str, Json]) -> EvaluationScope:
    return EvaluationScope(
        input=value,
        context=lambda: context_object(turn, frame) | {"Map": {"Item": entry}},
        variables=turn.variables.visible(frame),
        rng=turn.rng,
    )


def _make_batches(
    turn: Turn, frame: Frame, state: Map, value: Json, items: Iterable[Json]
) -> Iterator[Json]:
    """Group items by MaxItemsPerBatch and MaxInputBytesPerBatch; 0 is no limit.

    The bytes are those of a child's whole input, with BatchInput and the commas.
    """
    scope = flow.evaluation_scope(turn, frame, value)
    batcher: Any = state.distributed and state.distributed.item_batcher
    most = _batch_limit(state, batcher, "MaxItemsPerBatch", scope)
    room = _batch_limit(state, batcher, "MaxInputBytesPerBatch", scope)
    head = {}
    if batcher.get("BatchInput") is not None:
        head["BatchInput"] = batcher["BatchInput"].evaluate(scope)
    batch: list[Json] = []
    size = empty = len(Payload.of({**head, "Items": batch}).text.encode())
    for item in items:
        # An item larger than the limit of bytes makes a batch of its own.
        length = len(Payload.of(item).text.encode())
        if batch and ((most and len(batch) >= most) or (room and size + 1 + length > room)):
            yield {**head, "Items": batch}
            batch, size = [], empty
        size += length + bool(batch)  # a comma before each item but the first
        batch.append(item)
    if batch:
        yield {**head, "Items": batch}


def _batch_limit(state: Map, batcher: Any, name: str, scope: EvaluationScope) -> int:
    """Return a limit of the batcher, literal or evaluated; 0 for none."""
    expression = batcher.get(f"{name}Path")
    value = batcher.get(name, 0) if expression is None else expression.evaluate(scope)
    if not is_whole_number(value) or value < 0:
        allowed = "a positive integer"
        cause = f"{name}: got {Payload.of(value).text}, wanted {allowed}"
        raise _value_error(state, expression, f"ItemBatcher/{name}", value, allowed, cause)
    return int(value)


# -- how many may fail -----------------------------------------------------------------------------


def tolerated_failures(
    turn: Turn, frame: Frame, state: Map, extra: Distributed, value: Json
) -> tuple[int | None, float | None]:
    """Return ToleratedFailureCount and ToleratedFailurePercentage, None for a missing one."""
    count = _tolerated_count(turn, frame, state, extra, value)
    return count, _tolerated_percentage(turn, frame, state, extra, value)


def _tolerated_count(
    turn: Turn, frame: Frame, state: Map, extra: Distributed, value: Json
) -> int | None:
    expression = extra.tolerated_failure_count
    if expression is None:
        return None
    field = "ToleratedFailureCount"
    got = expression.evaluate(flow.evaluation_scope(turn, frame, value))
    count = _as_number(state, got)
    allowed = "an integer from 0"
    if count is None or not count.is_integer():
        cause = _not_a_number("integer", expression, field, got)
        raise _value_error(state, expression, field, got, allowed, cause)
    if count < 0:
        cause = "ToleratedFailureCount cannot be negative."
        raise _value_error(state, expression, field, got, allowed, cause)
    return int(min(count, LARGEST))


def _tolerated_percentage(
    turn: Turn, frame: Frame, state: Map, extra: Distributed, value: Json
) -> float | None:
    expression = extra.tolerated_failure_percentage
    if expression is None:
        return None
    field = "ToleratedFailurePercentage"
    got = expression.evaluate(flow.evaluation_scope(turn, frame, value))
    percentage = _as_number(state, got)
    allowed = "a number from 0 to 100"
    if percentage is None:
        cause = _not_a_number("float", expression, field, got)
        raise _value_error(state, expression, field, got, allowed, cause)
    if not 0 <= percentage <= 100:  # noqa: PLR2004
        cause = "ToleratedFailurePercentage must be between 0 and 100."
        raise _value_error(state, expression, field, got, allowed, cause)
    return percentage


def _as_number(state: Map, got: Json) -> float | None:
    """Return a number, None for any other value. AWS accepts a number as text from a path."""
    if isinstance(got, str) and state.language is not QueryLanguage.JSONATA:
        try:
            return float(got)
        except ValueError:
            return None
    if isinstance(got, bool) or not isinstance(got, int | float):
        return None
    return as_float(got)


def _not_a_number(expected: str, expression: Expression, field: str, got: Json) -> str:
    text = got if isinstance(got, str) else Payload.of(got).text
    path = getattr(expression, "text", "")
    return f'The {field}Path field refers to value "{text}" which is not a valid {expected}: {path}'
