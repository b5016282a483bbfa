"""Actions on state machines: create, describe, update, delete, list and validate."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import engine
from console import arns
from console.awsapi import paging
from console.awsapi.members import reads
from console.awsapi.operations import encryption
from console.awsapi.operations.call import Call, present, seconds
from console.awsapi.operations.tags import as_mapping
from console.errors import ErrorCode, ServiceError, StateMachineDoesNotExist, ValidationException
from console.integrations import unregistered
from console.store.executions.find import get_execution
from console.store.machines import log_groups, machines, tags, versions

if TYPE_CHECKING:
    from console.models import StateMachine, Version

_NO_LOGGING = {"level": "OFF", "includeExecutionData": False}
_NO_TRACING = {"enabled": False}
_NO_DEFINITION = "{}"  # for METADATA_ONLY. Source: API reference, DescribeStateMachine
_DIAGNOSTICS = 100
_CONFIGURATION_MEMBERS = (
    "loggingConfiguration.level loggingConfiguration.includeExecutionData "
    "loggingConfiguration.destinations.cloudWatchLogsLogGroup.logGroupArn "
    "tracingConfiguration.enabled encryptionConfiguration.kmsKeyId "
    "encryptionConfiguration.kmsDataKeyReusePeriodSeconds encryptionConfiguration.type"
)
UNREGISTERED = "FUNCTION_NOT_REGISTERED"


@reads(
    f"{_CONFIGURATION_MEMBERS} name definition roleArn type publish versionDescription "
    "tags.key tags.value"
)
def create(call: Call) -> dict[str, Any]:
    """CreateStateMachine."""
    params = call.params
    _check_description(params)
    new_tags = as_mapping(params.get("tags") or ())
    tags.check_tags(new_tags)
    version: Version | None = None

    def publish(row: StateMachine) -> None:
        nonlocal version
        version = _publish(call, row)
        # A repeated call is idempotent only with the same description of the version.
        if version is not None and version.description != (params.get("versionDescription") or ""):
            raise machines.already_exists(row.arn)

    # In one transaction: else a crash may leave a state machine without its version.
    machine = machines.create_machine(
        call.project,
        call.region,
        name=params["name"],
        definition=params["definition"],
        role_arn=params["roleArn"],
        type=params.get("type") or "STANDARD",
        tags=new_tags,
        then=publish,
        actor=call.actor,
        **_configurations(call),
    )
    return {
        "stateMachineArn": machine.arn,
        "creationDate": seconds(machine.created_ms),
        **present(stateMachineVersionArn=version.arn if version else None),
    }


def _publish(call: Call, machine: StateMachine, *, redescribe: bool = False) -> Version | None:
    """Publish a version if the request has ``publish``.

    ``redescribe``: a new description makes a version, though nothing else changed.
    """
    if not call.params.get("publish"):
        return None
    return versions.publish_version(
        machine,
        description=call.params.get("versionDescription") or "",
        redescribe=redescribe,
        actor=call.actor,
    )


def _check_description(params: dict[str, Any]) -> None:
    if params.get("versionDescription") and not params.get("publish"):
        raise ValidationException("Version description can only be set when publish is true")


def _configurations(call: Call) -> dict[str, str]:
    """Return the configurations as JSON texts; the default one is ""."""
    params = call.params
    logging = params.get("loggingConfiguration")
    if logging is not None:
        log_groups.check_group_name(call.project, call.region, logging)
    return {
        "logging": _text(logging and {**_NO_LOGGING, **logging}, _NO_LOGGING),
        "tracing": _text(params.get("tracingConfiguration"), _NO_TRACING),
        "encryption": encryption.encryption_as_text(params.get("encryptionConfiguration")),
    }


def _text(value: Any, default: Any) -> str:
    return "" if not value or value == default else json.dumps(value, sort_keys=True)


@reads(f"{_CONFIGURATION_MEMBERS} stateMachineArn definition roleArn publish versionDescription")
def update(call: Call) -> dict[str, Any]:
    """UpdateStateMachine."""
    params = call.params
    _check_description(params)
    arns.check_unlabelled(params["stateMachineArn"])
    machine = machines.get_machine(call.project, params["stateMachineArn"])
    texts = _configurations(call)
    version: Version | None = None

    def publish(row: StateMachine) -> None:
        nonlocal version
        version = _publish(call, row, redescribe=True)

    # In one transaction: else two clients that update at once may publish one version for both.
    changed = machines.update_machine(
        machine,
        definition=params.get("definition"),
        role_arn=params.get("roleArn"),
        logging=texts["logging"] if "loggingConfiguration" in params else None,
        tracing=texts["tracing"] if "tracingConfiguration" in params else None,
        encryption=texts["encryption"] if "encryptionConfiguration" in params else None,
        then=publish,
        actor=call.actor,
    )
    return present(
        updateDate=seconds(changed.updated_ms),
        revisionId=changed.revision_id or None,
        stateMachineVersionArn=version.arn if version else None,
    )


@reads("stateMachineArn includedData")
def describe(call: Call) -> dict[str, Any]:
    """DescribeStateMachine."""
    requested_arn = call.params["stateMachineArn"]
    arns.parse_arn(requested_arn, "stateMachine")
    arn, _, label = requested_arn.partition("/")
    target = versions.resolve_target(call.project, arn)
    if label and label not in engine.parse_stored(target.machine.definition.text).labels:
        raise StateMachineDoesNotExist(f"State Machine Does Not Exist: '{arn}/{label}'")
    machine, described = target.machine, target.version or target.machine
    with_data = call.params.get("includedData") != "METADATA_ONLY"
    return {
        "definition": described.definition.text if with_data else _NO_DEFINITION,
        "stateMachineArn": described.arn,
        "name": machine.name,
        "status": machine.status,
        "roleArn": described.role_arn,
        "type": machine.type,
        "creationDate": seconds(described.created_ms),
        **_configuration_members(machine, target.version),
        **present(
            label=label or None,
            description=(target.version.description or None) if target.version else None,
            revisionId=described.revision_id or None,
            variableReferences=_references(described.definition.text) if with_data else None,
        ),
    }


def _references(definition: str) -> dict[str, list[str]] | None:
    return engine.variable_references(definition) or None


def _configuration_members(machine: StateMachine, version: Version | None) -> dict[str, Any]:
    """Return the configurations of a state machine or of a published version."""
    described = machine if version is None or version.logging is None else version
    return {
        "loggingConfiguration": json.loads(described.logging) if described.logging else _NO_LOGGING,
        "tracingConfiguration": json.loads(described.tracing) if described.tracing else _NO_TRACING,
        "encryptionConfiguration": encryption.encryption_members(described.encryption or ""),
    }


@reads("executionArn includedData")
def describe_for_execution(call: Call) -> dict[str, Any]:
    """DescribeStateMachineForExecution: the definition at the execution's start."""
    execution = get_execution(call.project, call.params["executionArn"])
    with_data = call.params.get("includedData") != "METADATA_ONLY"
    machine = execution.state_machine
    version = versions.version_of_execution(execution)
    settings = _configuration_members(machine, version) if machine is not None else {}
    name, _, label = execution.state_machine_arn.rsplit(":", 1)[-1].partition("/")
    return {
        "stateMachineArn": execution.state_machine_arn,
        "name": name,
        "definition": execution.definition.text if with_data else _NO_DEFINITION,
        "roleArn": execution.role_arn,
        "updateDate": seconds(execution.machine_updated_ms),
        **settings,
        **present(
            label=label or None,
            mapRunArn=execution.map_run.arn if execution.map_run else None,
            revisionId=execution.revision_id or None,
            variableReferences=_references(execution.definition.text) if with_data else None,
        ),
    }


@reads("stateMachineArn")
def delete(call: Call) -> dict[str, Any]:
    """DeleteStateMachine."""
    arns.check_unlabelled(call.params["stateMachineArn"])
    machines.delete_machine(call.project, call.params["stateMachineArn"], call.actor)
    return {}


@reads("maxResults nextToken")
def list_page(call: Call) -> dict[str, Any]:
    """ListStateMachines, by name."""
    after = paging.open_position(call, call.params) or ""
    limit = paging.page_size(call.params) + 1
    rows = machines.list_page(call.project, call.region, after=after, limit=limit)
    return paging.page_answer(call, "stateMachines", rows, _item, lambda row: row.name)


def _item(row: StateMachine) -> dict[str, Any]:
    return {
        "stateMachineArn": row.arn,
        "name": row.name,
        "type": row.type,
        "creationDate": seconds(row.created_ms),
    }


@reads("definition type severity maxResults")
def validate(call: Call) -> dict[str, Any]:
    """ValidateStateMachineDefinition, with the diagnostics of the engine."""
    params = call.params
    problems = engine.check(params["definition"], params.get("type") or "STANDARD")
    if params.get("severity", "ERROR") == "ERROR":
        problems = [problem for problem in problems if problem.severity == "ERROR"]
    limit = params.get("maxResults") or _DIAGNOSTICS
    failed = any(problem.severity == "ERROR" for problem in problems)
    diagnostics = [
        {
            "severity": problem.severity,
            "code": problem.code,
            "message": problem.message,
            **present(location=problem.location or None),
        }
        for problem in problems
    ]
    if params.get("severity") == "WARNING" and not failed:
        diagnostics += _unregistered_warnings(call, params["definition"])
    return {
        "result": "FAIL" if failed else "OK",
        "diagnostics": diagnostics[:limit],
        "truncated": len(diagnostics) > limit,
    }


def _unregistered_warnings(call: Call, definition: str) -> list[dict[str, Any]]:
    """Return a warning for each call of an unregistered function; AWS has no such warning."""
    calls = unregistered.unregistered_functions(definition, call.project, call.region)
    return [
        {
            "severity": "WARNING",
            "code": UNREGISTERED,
            "message": f"State {state!r} calls {name}: registered nowhere",
        }
        for state, name in calls
    ]


def standard_only(machine: StateMachine) -> None:
    """Raise an error for an Express state machine where only Standard is supported."""
    if machine.type != "STANDARD":
        msg = "This operation is not supported by this type of state machine"
        raise ServiceError(ErrorCode.StateMachineTypeNotSupported, msg)
