"""List the permissions that a definition needs: for Tasks, distributed Maps and options."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import engine
from console.features.deploy.sources import RoleOptions
from console.features.roles.evaluation.calls import Need, RoleAccount, RoleCall, call_needs
from console.features.roles.evaluation.integrations import EVERYTHING
from console.features.roles.evaluation.patterns import HOLE

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Need", "RoleAccount", "RoleOptions", "needs_of"]
_LOG_ACTIONS = (
    "logs:CreateLogDelivery logs:GetLogDelivery logs:UpdateLogDelivery logs:DeleteLogDelivery "
    "logs:ListLogDeliveries logs:PutResourcePolicy logs:DescribeResourcePolicies "
    "logs:DescribeLogGroups"
)
_TRACE_ACTIONS = (
    "xray:PutTraceSegments xray:PutTelemetryRecords xray:GetSamplingRules xray:GetSamplingTargets"
)
_KEY_ACTIONS = "kms:Decrypt kms:GenerateDataKey"
_PARTITION = re.compile(r"^arn:\$\{[^{}]*\}:")
_UNNAMED = re.compile(r"\$\{[^{}]*\}|\{\{resolve:[^{}]*\}\}")
_REDRIVE = "needed to redrive the Map Run"
_OF_CHILDREN = "AWS documents it for child executions; roles made by the CDK go without"
_READERS = {"listObjectsV2": "s3:ListBucket", "getObject": "s3:GetObject"}
_WRITER = "s3:PutObject s3:GetObject s3:ListMultipartUploadParts s3:AbortMultipartUpload"


def needs_of(
    definition: str, name: str, account: RoleAccount, options: RoleOptions | None = None
) -> list[Need]:
    """Return the distinct permissions of each state of a state machine.

    ``definition``: JSON text, may have placeholders. Raise ValueError unless it is a JSON object.
    """
    document = json.loads(definition)
    if not isinstance(document, dict):
        raise ValueError("got no object, wanted a definition")
    machine = account.arn("states", f"stateMachine:{name}")
    needs: list[Need] = []
    for state_name, state in _states_of(document):
        needs += _state_needs(state_name, state, account, machine)
    needs += _option_needs(options or RoleOptions(), account, machine)
    unique: dict[tuple[str, str, str, str], Need] = {}
    for need in needs:
        unique.setdefault((need.state, need.action, need.resource, need.reason), need)
    return list(unique.values())


def _states_of(block: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield name and fields of each state of a block, including inner blocks."""
    states = block.get("States") if isinstance(block, dict) else None
    for name, state in states.items() if isinstance(states, dict) else ():
        if not isinstance(state, dict):
            continue
        yield name, state
        branches = state.get("Branches")
        for inner in branches if isinstance(branches, list) else ():
            yield from _states_of(inner)
        for key in ("ItemProcessor", "Iterator"):
            yield from _states_of(state.get(key))


def _state_needs(
    name: str, state: dict[str, Any], account: RoleAccount, machine: str
) -> list[Need]:
    if state.get("Type") == "Map":
        return list(_map_needs(name, state, account, machine))
    if state.get("Type") != "Task":
        return []
    text = _PARTITION.sub("arn:aws:", str(state.get("Resource", "")))
    resource = engine.parse_resource(_UNNAMED.sub("placeholder", text)) if text else None
    if resource is None:
        reason = f"the Resource {state.get('Resource')} names a call that is not known here"
        return [Need(name, "", HOLE, str(state.get("Resource")), {}, reason)]
    if resource.arn != text:
        resource = replace(resource, arn=str(state["Resource"]))
    parameters = state.get("Arguments", state.get("Parameters"))
    call = RoleCall(name, resource, parameters, account, machine)
    credentials = state.get("Credentials")
    if credentials is not None:  # another role makes the call, and this one becomes it
        other = replace(call, parameters=credentials).value("RoleArn") or HOLE
        return [call.need("sts:AssumeRole", other)]
    return call_needs(call)


def _map_needs(
    name: str, state: dict[str, Any], account: RoleAccount, machine: str
) -> Iterator[Need]:
    """Yield the permissions of a distributed Map: children, redrive, reader and writer."""
    processor = state.get("ItemProcessor")
    config = processor.get("ProcessorConfig") if isinstance(processor, dict) else None
    if not isinstance(config, dict) or config.get("Mode") != "DISTRIBUTED":
        return
    label = state.get("Label")
    executions = machine.replace(":stateMachine:", ":execution:", 1)
    yield Need(name, "states:StartExecution", machine, "distributed Map")
    for action in ("states:DescribeExecution", "states:StopExecution"):
        arn = f"{executions}:{HOLE}"
        yield Need(name, action, arn, "distributed Map", {}, _OF_CHILDREN)
    runs = f"{executions}/{label or HOLE}:{HOLE}"
    yield Need(name, "states:RedriveExecution", runs, "distributed Map", {}, _REDRIVE)
    yield from _reader_needs(name, state.get("ItemReader"), account)
    writer = state.get("ResultWriter")
    if isinstance(writer, dict) and writer.get("Resource"):
        bucket, prefix = _s3_place(writer, "Prefix")
        place = account.arn("s3", f"{bucket}/{prefix.rstrip('/') + '/' if prefix else ''}{HOLE}")
        for action in _WRITER.split():
            yield Need(name, action, place, "ResultWriter")


def _reader_needs(name: str, reader: Any, account: RoleAccount) -> Iterator[Need]:
    if not isinstance(reader, dict) or not reader.get("Resource"):
        return
    action = _READERS.get(str(reader["Resource"]).rpartition(":")[2], "")
    if not action:
        reason = f"the ItemReader {reader['Resource']} is not known here"
        yield Need(name, "", HOLE, "ItemReader", {}, reason)
        return
    bucket, key = _s3_place(reader, "Key")
    if action == "s3:ListBucket":
        yield Need(name, action, account.arn("s3", bucket), "ItemReader")
        config = reader.get("ReaderConfig")
        if isinstance(config, dict) and config.get("Transformation") == "LOAD_AND_FLATTEN":
            _, prefix = _s3_place(reader, "Prefix")
            objects = account.arn("s3", f"{bucket}/{prefix}{HOLE}")
            yield Need(name, "s3:GetObject", objects, "ItemReader")
        return
    yield Need(name, action, account.arn("s3", f"{bucket}/{key or HOLE}"), "ItemReader")
    config = reader.get("ReaderConfig")
    if isinstance(config, dict) and config.get("InputType") == "MANIFEST":
        everything = account.arn("s3", f"{HOLE}/{HOLE}")
        yield Need(name, "s3:GetObject", everything, "ItemReader, objects of the manifest")


def _s3_place(said: dict[str, Any], second: str) -> tuple[str, str]:
    """Return bucket and key or prefix of a reader or writer; "" for a missing key."""
    parameters = said.get("Arguments", said.get("Parameters"))
    resource = engine.Resource("", engine.TaskKind.SERVICE)
    call = RoleCall("", resource, parameters, RoleAccount(), "")
    return call.value("Bucket") or HOLE, call.value(second) or ""


def _option_needs(options: RoleOptions, account: RoleAccount, machine: str) -> Iterator[Need]:
    context = {"aws:requestedregion": (account.region,)}
    if options.logs:
        for action in _LOG_ACTIONS.split():
            yield Need("", action, EVERYTHING, "logging", context)
    if options.tracing:
        for action in _TRACE_ACTIONS.split():
            yield Need("", action, EVERYTHING, "tracing", context)
    if options.key:
        encrypted = {"kms:encryptioncontext:aws:states:statemachinearn": (machine,)}
        for action in _KEY_ACTIONS.split():
            yield Need("", action, options.key, "encryption", context | encrypted)
