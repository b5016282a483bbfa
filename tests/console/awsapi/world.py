"""Something of each kind, and a way to call the API in the thread of a test."""

from __future__ import annotations

import json
import time
from typing import Any

from console import access
from console.awsapi import services, shapes
from console.awsapi.operations.call import Call
from console.db.audit import Actor
from console.db.writer import Change
from console.models import Execution, Membership, Project, Role, StateMachine
from console.own_api import LongPoll
from tests.console.store.helpers import PASS, ROLE, WAIT, WORK, drain

MODEL = shapes.service_model()
ACCOUNT = "arn:aws:states:us-east-1:123456789012"
MAP: dict[str, Any] = {
    "StartAt": "M",
    "States": {
        "M": {
            "Type": "Map",
            "Label": "lab",
            "MaxConcurrency": 3,
            "ItemProcessor": {
                "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"},
                "StartAt": "P",
                "States": {"P": {"Type": "Pass", "End": True}},
            },
            "End": True,
        }
    },
}
FAIL: dict[str, Any] = {
    "StartAt": "F",
    "States": {"F": {"Type": "Fail", "Error": "E", "Cause": "C"}},
}
REFERS: dict[str, Any] = {
    "StartAt": "P",
    "States": {"P": {"Type": "Pass", "Assign": {"v": 1}, "Next": "Q"}},
}
REFERS["States"]["Q"] = {"Type": "Pass", "Parameters": {"x.$": "$v"}, "End": True}


class World:
    """Something of each kind, and a way to call the API in this thread."""

    def __init__(self, project: Project, user: Any) -> None:
        Membership.objects.create(project=project, user=user, role=Role.OWNER)
        self.principal = access.Principal(user, project, Role.OWNER, "AKIATEST")
        self.machine = self.create("machine", REFERS)
        self.activity = self.ask("CreateActivity", name="work")["activityArn"]
        self.count = 0

    def ask(self, action: str, **params: Any) -> dict[str, Any]:
        """Call an action; raise its error."""
        shapes.check_params(MODEL.operation_model(action), params)
        actor = Actor(self.principal.user.get_username(), self.principal.key_id, "request")
        call = Call(action, params, self.principal, "us-east-1", actor)
        answer = services.STATES.handler(action)(call)
        if isinstance(answer, LongPoll):
            return self.awaited(answer, 5 if action == "StartSyncExecution" else 0)
        return answer.result() if isinstance(answer, Change) else answer

    def awaited(self, answer: LongPoll, seconds: float) -> dict[str, Any]:
        """Return a later answer, or what comes instead when it is not there in time."""
        deadline = time.monotonic() + seconds
        while (result := answer.look()) is None and time.monotonic() < deadline:
            time.sleep(0.01)
        result = result.result() if isinstance(result, Change) else result
        return answer.otherwise if result is None else result

    def create(self, name: str, definition: Any, **more: Any) -> str:
        """Create a machine and return its ARN."""
        text = json.dumps(definition)
        answer = self.ask("CreateStateMachine", name=name, definition=text, roleArn=ROLE, **more)
        arn: str = answer["stateMachineArn"]
        return arn

    def fresh(self, definition: Any = WAIT, **more: Any) -> str:
        """Create a machine of a new name."""
        self.count += 1
        return self.create(f"fresh-{self.count}", definition, **more)

    def start(self, machine: str, **more: Any) -> str:
        """Start an execution and return its ARN."""
        arn: str = self.ask("StartExecution", stateMachineArn=machine, **more)["executionArn"]
        return arn

    def deleting(self, **more: Any) -> str:
        """Return a machine that is being deleted."""
        arn = self.fresh(PASS, **more)
        StateMachine.objects.filter(arn=arn).update(status="DELETING")
        return arn

    def version(self, machine: str | None = None) -> str:
        """Publish a version and return its ARN."""
        answer = self.ask("PublishStateMachineVersion", stateMachineArn=machine or self.fresh())
        arn: str = answer["stateMachineVersionArn"]
        return arn

    def alias(self, version: str | None = None, name: str = "live") -> str:
        """Make an alias of a version and return its ARN."""
        route = routes(version or self.version())
        answer = self.ask("CreateStateMachineAlias", name=name, routingConfiguration=route)
        arn: str = answer["stateMachineAliasArn"]
        return arn

    def token(self) -> str:
        """Return the token of an open task."""
        arn = self.start(self.fresh(WORK))
        drain(Execution.objects.get(arn=arn))
        token: str = self.ask("GetActivityTask", activityArn=self.activity)["taskToken"]
        return token

    def closed_token(self) -> str:
        """Return the token of a task that has ended."""
        token = self.token()
        self.ask("SendTaskSuccess", taskToken=token, output="1")
        return token


def routes(*versions: str) -> list[dict[str, Any]]:
    """Return a routing configuration with equal weights."""
    weight = 100 // len(versions)
    return [{"stateMachineVersionArn": arn, "weight": weight} for arn in versions]


def definition(value: Any) -> str:
    """Return a definition's text."""
    return json.dumps(value)
