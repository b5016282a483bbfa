"""The actions of Step Functions in the core, and their handler functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from console.awsapi.operations import (
    activities,
    executions,
    express,
    map_runs,
    state_machines,
    tags,
    tasks,
    versions,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from console.awsapi.operations.call import Answer, Call

HANDLERS: dict[str, Callable[[Call], Answer]] = {
    "CreateActivity": activities.create,
    "CreateStateMachine": state_machines.create,
    "DeleteActivity": activities.delete,
    "DeleteStateMachine": state_machines.delete,
    "DescribeActivity": activities.describe,
    "DescribeExecution": executions.describe,
    "DescribeMapRun": map_runs.describe,
    "DescribeStateMachine": state_machines.describe,
    "DescribeStateMachineForExecution": state_machines.describe_for_execution,
    "GetActivityTask": tasks.get_activity_task,
    "GetExecutionHistory": executions.history,
    "ListActivities": activities.list_page,
    "ListExecutions": executions.list_page,
    "ListMapRuns": map_runs.list_page,
    "ListStateMachines": state_machines.list_page,
    "RedriveExecution": executions.redrive,
    "SendTaskFailure": tasks.fail,
    "SendTaskHeartbeat": tasks.heartbeat,
    "SendTaskSuccess": tasks.succeed,
    "StartExecution": executions.start,
    "StartSyncExecution": express.start_sync,
    "StopExecution": executions.stop,
    "UpdateMapRun": map_runs.update,
    "UpdateStateMachine": state_machines.update,
    "CreateStateMachineAlias": versions.create_alias,
    "DeleteStateMachineAlias": versions.delete_alias,
    "DeleteStateMachineVersion": versions.delete_version,
    "DescribeStateMachineAlias": versions.describe_alias,
    "ListStateMachineAliases": versions.list_aliases,
    "ListStateMachineVersions": versions.list_versions,
    "ListTagsForResource": tags.list_tags,
    "PublishStateMachineVersion": versions.publish,
    "TagResource": tags.tag_resource,
    "UntagResource": tags.untag_resource,
    "UpdateStateMachineAlias": versions.update_alias,
    "ValidateStateMachineDefinition": state_machines.validate,
}
