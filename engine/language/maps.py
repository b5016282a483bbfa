"""Read a Map state, inline or distributed, in a definition."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.data.expression import ROOT, Literal
from engine.data.paths import is_reference_path
from engine.language import fields
from engine.language.diagnostics import DiagnosticCode
from engine.language.map_parts import (
    read_item_batcher,
    read_item_reader,
    read_number,
    read_result_writer,
)
from engine.language.model import (
    INLINE_FAULT,
    Block,
    DataFlow,
    Distributed,
    MachineType,
    Map,
)
from engine.language.recovery import read_recovery
from engine.language.wording import one_missing

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
        node.error("", one_missing(("ItemProcessor", "Iterator")))
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
        max_concurrency=read_number(node, "MaxConcurrency"),
        max_concurrency_path=concurrency if isinstance(concurrency, str) else None,
        distributed=distributed,
        unusable=distributed is None and any(map(node.has, fields.DISTRIBUTED_PARTS)),
        recovery=read_recovery(node, data_flow),
    )


def _check_inline(node: DefinitionNode) -> None:
    """Report fields of a distributed Map in an inline Map.

    A Tolerated... field changes nothing in an inline Map and is accepted with a warning, as other
    linters do. The service takes the definition with an ItemReader, ItemBatcher or ResultWriter,
    and fails the execution.
    """
    for name in fields.DISTRIBUTED_ONLY:
        message = f"Field '{name}' is only supported in Distributed Map"
        if node.has(name) and name.startswith("Tolerated"):
            node.problems.warning(node.at(name), message, DiagnosticCode.INLINE_IGNORED)
        elif node.has(name) and name in fields.DISTRIBUTED_PARTS:
            fails = f"{INLINE_FAULT}: the execution fails"
            node.problems.warning(node.at(name), fails, DiagnosticCode.INLINE_FAILS)
        elif node.has(name):
            node.error("", message)
    read_item_reader(node)
    read_item_batcher(node)
    read_result_writer(node)
    read_number(node, "ToleratedFailureCount")
    _read_percentage(node)


def _without_parameters(data: DataFlow) -> DataFlow:
    """Return the data fields of a Map without Parameters, the old name of ItemSelector."""
    return DataFlow(
        input_path=data.input_path,
        result_selector=data.result_selector,
        result_path=data.result_path,
        output_path=data.output_path,
        output=data.output,
        assign=data.assign,
    )


_ITEMS = "The value for the field 'Items' must be an array or an expression"


def _read_items(node: DefinitionNode) -> Expression:
    if node.has("Items"):
        value = node.get("Items")
        if not isinstance(value, list | dict | str):
            node.error("Items", _ITEMS)
        elif isinstance(value, str) and not value.startswith("{%"):
            node.newer_error("Items", _ITEMS)
        return node.template("Items") or ROOT
    value = node.get("ItemsPath")
    if isinstance(value, str) and value.startswith("$") and not is_reference_path(value):
        node.newer_error("ItemsPath", "Value is not a Reference Path")
    return node.path("ItemsPath") or ROOT


def _read_processor(builder: MachineBuilder, node: DefinitionNode | None) -> Block:
    return Block("", {}) if node is None else builder.nested(node, fields.PROCESSOR)


def _read_distributed(
    builder: MachineBuilder, node: DefinitionNode, processor: DefinitionNode | None
) -> Distributed | None:
    config = None if processor is None else processor.child("ProcessorConfig")
    if config is None:
        return None
    mode = config.one_of("Mode", ("INLINE", "DISTRIBUTED"))
    config.one_of("ExecutionType", tuple(MachineType))
    for name in config.value:
        if name not in ("Mode", "ExecutionType", "Comment"):
            config.newer_error("", f"Field '{name}' is not supported")
    if mode != "DISTRIBUTED":
        if mode == "INLINE" and config.has("ExecutionType"):
            config.newer_error("", "Field 'ExecutionType' is not supported")
        return None
    no_maps = "Express state machine does not support Distributed Map"
    if builder.express:
        config.error("Mode", no_maps)
    elif builder.express_child:
        config.newer_error("Mode", no_maps)
    if not config.has("ExecutionType"):
        config.error("", "These fields are required: [ExecutionType]")
    return Distributed(
        label=builder.label(node),
        item_reader=read_item_reader(node),
        item_batcher=read_item_batcher(node),
        result_writer=read_result_writer(node),
        tolerated_failure_count=read_number(node, "ToleratedFailureCount"),
        tolerated_failure_percentage=_read_percentage(node),
    )


def _read_percentage(node: DefinitionNode) -> Expression | None:
    name = "ToleratedFailurePercentage"
    if node.has(f"{name}Path") or (node.jsonata and isinstance(node.get(name), str)):
        return read_number(node, name)
    value = node.get(name)
    if not node.has(name):
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        node.error(name, "Expected value of type Number")
    elif value < 0:
        node.error(name, "Minimum value is 0.0")
    elif value > 100:  # noqa: PLR2004 - percent
        node.error(name, "Maximum value is 100.0")
    return Literal(value)
