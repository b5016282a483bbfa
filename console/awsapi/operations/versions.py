"""Actions on versions and aliases of state machines."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from console.awsapi import paging
from console.awsapi.members import reads
from console.awsapi.operations.call import Call, present, seconds
from console.errors import ErrorCode, ServiceError, StateMachineDoesNotExist
from console.store.machines import machines, versions

if TYPE_CHECKING:
    from console.models import Alias, Version


@reads("stateMachineArn revisionId description")
def publish(call: Call) -> dict[str, Any]:
    """PublishStateMachineVersion."""
    version = versions.publish_version(
        machines.get_machine(call.project, call.params["stateMachineArn"]),
        description=call.params.get("description") or "",
        revision_id=call.params.get("revisionId"),
        actor=call.actor,
    )
    return {"creationDate": seconds(version.created_ms), "stateMachineVersionArn": version.arn}


@reads("stateMachineVersionArn")
def delete_version(call: Call) -> dict[str, Any]:
    """DeleteStateMachineVersion."""
    versions.delete_version(call.project, call.params["stateMachineVersionArn"], call.actor)
    return {}


@reads("stateMachineArn maxResults nextToken")
def list_versions(call: Call) -> dict[str, Any]:
    """ListStateMachineVersions, newest first."""
    arn = call.params["stateMachineArn"]
    try:
        machine = machines.get_machine(call.project, arn)
    except StateMachineDoesNotExist:  # which this operation does not have [measured]
        raise ServiceError(ErrorCode.InvalidArn, f"Invalid Arn: '{arn}'") from None
    before = paging.open_position(call, call.params) or 0
    rows = versions.list_versions(machine, before=before, limit=paging.page_size(call.params) + 1)
    return paging.page_answer(call, "stateMachineVersions", rows, _version, lambda row: row.number)


def _version(row: Version) -> dict[str, Any]:
    return {"stateMachineVersionArn": row.arn, "creationDate": seconds(row.created_ms)}


@reads("name description routingConfiguration.stateMachineVersionArn routingConfiguration.weight")
def create_alias(call: Call) -> dict[str, Any]:
    """CreateStateMachineAlias."""
    alias = versions.create_alias(
        call.project,
        call.params["name"],
        call.params["routingConfiguration"],
        description=call.params.get("description") or "",
        actor=call.actor,
    )
    return {"stateMachineAliasArn": alias.arn, "creationDate": seconds(alias.created_ms)}


@reads("stateMachineAliasArn")
def describe_alias(call: Call) -> dict[str, Any]:
    """DescribeStateMachineAlias."""
    alias = versions.get_alias(call.project, call.params["stateMachineAliasArn"])
    return {
        "stateMachineAliasArn": alias.arn,
        "name": alias.name,
        **present(description=alias.description or None),
        "routingConfiguration": _routing(alias),
        "creationDate": seconds(alias.created_ms),
        "updateDate": seconds(alias.updated_ms),
    }


def _routing(alias: Alias) -> list[dict[str, Any]]:
    machine = alias.state_machine.arn
    return [
        {"stateMachineVersionArn": f"{machine}:{number}", "weight": weight}
        for number, weight in json.loads(alias.routing)
    ]


@reads(
    "stateMachineAliasArn description routingConfiguration.stateMachineVersionArn "
    "routingConfiguration.weight"
)
def update_alias(call: Call) -> dict[str, Any]:
    """UpdateStateMachineAlias."""
    alias = versions.update_alias(
        call.project,
        call.params["stateMachineAliasArn"],
        routing=call.params.get("routingConfiguration"),
        description=call.params.get("description"),
        actor=call.actor,
    )
    return {"updateDate": seconds(alias.updated_ms)}


@reads("stateMachineAliasArn")
def delete_alias(call: Call) -> dict[str, Any]:
    """DeleteStateMachineAlias."""
    versions.delete_alias(call.project, call.params["stateMachineAliasArn"], call.actor)
    return {}


@reads("stateMachineArn maxResults nextToken")
def list_aliases(call: Call) -> dict[str, Any]:
    """ListStateMachineAliases of a state machine or version."""
    target = versions.resolve_target(call.project, call.params["stateMachineArn"])
    after = paging.open_position(call, call.params) or 0
    rows = versions.list_aliases(target, after=after, limit=paging.page_size(call.params) + 1)
    return paging.page_answer(call, "stateMachineAliases", rows, _alias, lambda row: row.pk)


def _alias(row: Alias) -> dict[str, Any]:
    return {"stateMachineAliasArn": row.arn, "creationDate": seconds(row.created_ms)}
