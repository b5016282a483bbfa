"""The reader of a Map, inline or distributed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.data.expression import ROOT, Literal
from engine.language import fields
from engine.language.diagnostics import DiagnosticCode
from engine.language.model import Block, DataFlow, Distributed, MachineType, Map
from engine.language.recovery import read_recovery

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.data.expression import Expression
    from engine.language.builder import MachineBuilder
    from engine.language.node import DefinitionNode


def read_map(
    builder: MachineBuilder,
    node: DefinitionNode,
    shared: dict[str, Any],
    data: DataFlow,
    data_flow: Callable[[DefinitionNode], DataFlow],
) -> Map:
    """Read a Map; ``shared``: name, language and so on; ``data``: its data fields, already read."""
    processor = node.child("ItemProcessor") or node.child("Iterator")
    if processor is None and not node.has("ItemProcessor") and not node.has("Iterator"):
        node.error("", "These fields are required: [ItemProcessor]")
    # The Label is read before the processor, so that of two equal labels the inner one is reported.
    distributed = _read_distributed(builder, node, processor)
    if distributed is None:
        _check_inline(node)
    concurrency = node.get("MaxConcurrencyPath")
    return Map(
        **shared,
        items=_read_items(node),
        processor=_read_processor(builder, processor),
        data=_without_parameters(data),
        selector=node.template("ItemSelector") or data.parameters,
        max_concurrency=_read_number(node, "MaxConcurrency"),
        max_concurrency_path=concurrency if isinstance(concurrency, str) else None,
        distributed=distributed,
        recovery=read_recovery(node, data_flow),
    )


def _check_inline(node: DefinitionNode) -> None:
    """Note the fields that only a distributed Map has.

    A Tolerated... field changes nothing in an inline Map and is accepted with a warning, as other
    linters do. The others ask for something that an inline Map cannot do, and are refused.
    """
    for name in fields.DISTRIBUTED_ONLY:
        message = f"Field '{name}' is only supported in Distributed Map"
        if node.has(name) and name.startswith("Tolerated"):
            node.problems.warning(node.at(name), message, DiagnosticCode.INLINE_IGNORED)
        elif node.has(name):
            node.error(name, message)


def _without_parameters(data: DataFlow) -> DataFlow:
    """Return the data fields of a Map: there, Parameters is the old name of ItemSelector."""
    return DataFlow(
        input_path=data.input_path,
        result_selector=data.result_selector,
        result_path=data.result_path,
        output_path=data.output_path,
        output=data.output,
        assign=data.assign,
    )


def _read_items(node: DefinitionNode) -> Expression:
    if node.has("Items"):
        value = node.get("Items")
        if not isinstance(value, list | dict | str):
            node.error("Items", "The value for the field 'Items' must be an array or an expression")
        return node.template("Items") or ROOT
    return node.path("ItemsPath") or ROOT


def _read_number(node: DefinitionNode, name: str) -> Expression | None:
    if node.has(f"{name}Path"):
        return node.path(f"{name}Path")
    return node.scalar(name, 0)


def _read_processor(builder: MachineBuilder, node: DefinitionNode | None) -> Block:
    return Block("", {}) if node is None else builder.nested(node, fields.PROCESSOR)


def _read_distributed(
    builder: MachineBuilder, node: DefinitionNode, processor: DefinitionNode | None
) -> Distributed | None:
    config = None if processor is None else processor.child("ProcessorConfig")
    if config is None:
        return None
    mode = config.get("Mode")
    if mode not in (None, "INLINE", "DISTRIBUTED"):
        message = "The field 'Mode' should have one of these values: [INLINE, DISTRIBUTED]"
        config.error("Mode", message)
    if mode != "DISTRIBUTED":
        return None
    if builder.express:
        config.error("Mode", "Express state machine does not support Distributed Map")
    execution_type = config.get("ExecutionType")
    if execution_type not in tuple(MachineType):
        message = "The field 'ExecutionType' should have one of these values: [STANDARD, EXPRESS]"
        config.error("ExecutionType", message)
        execution_type = MachineType.STANDARD
    return Distributed(
        execution_type=MachineType(execution_type),
        label=builder.label(node),
        item_reader=_read_part(node, "ItemReader"),
        item_batcher=_read_part(node, "ItemBatcher"),
        result_writer=_read_part(node, "ResultWriter"),
        tolerated_failure_count=_read_number(node, "ToleratedFailureCount"),
        tolerated_failure_percentage=_read_percentage(node),
    )


def _read_percentage(node: DefinitionNode) -> Expression | None:
    name = "ToleratedFailurePercentage"
    if node.has(f"{name}Path") or isinstance(node.get(name), str):
        return _read_number(node, name)
    value = node.get(name)
    if not node.has(name):
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 100:  # noqa: PLR2004
        node.error(name, f"The value for the field '{name}' must be a number from 0 to 100")
    return Literal(value)


def _read_part(node: DefinitionNode, name: str) -> dict[str, Any] | None:
    """Return the fields of a reader, batcher or writer: expressions compiled, others as given."""
    part = node.child(name)
    if part is None:
        return None
    made: dict[str, Any] = {}
    for key, value in part.value.items():
        if key in ("Parameters", "Arguments", "BatchInput"):
            made[key] = part.template(key)
        elif key == "ReaderConfig" and isinstance(value, dict):
            made[key] = _read_reader_config(part.child(key))
        elif key.endswith("Path") and isinstance(value, str):
            made[key] = part.path(key)
        else:
            made[key] = value
    return made


def _read_reader_config(config: DefinitionNode | None) -> dict[str, Any]:
    """Return ReaderConfig; MaxItems becomes an expression, wherever it comes from."""
    if config is None:
        return {}
    made = {key: value for key, value in config.value.items() if not key.startswith("MaxItems")}
    most = _read_number(config, "MaxItems")
    return made if most is None else {**made, "MaxItems": most}
