"""Compare and deploy many state machines of a branch, with a fixed number of SQL statements.

A change equals the API calls that a client would make for one state machine: CreateStateMachine, or
UpdateStateMachine, TagResource and UntagResource. Rights, parameters, names, definitions, tags and
quotas are checked for each state machine by the same functions as in the API; a refusal affects
only that state machine. Only reading and writing of rows is combined.
"""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from django.db.models import Max

from console import arns, execution_rights
from console.awsapi import asgi, services, shapes
from console.awsapi.key_resources import resources_of
from console.awsapi.operations.call import Call
from console.awsapi.operations.state_machines import UNREGISTERED
from console.awsapi.operations.tags import as_mapping
from console.config import quotas
from console.db import audit, clock, refusals
from console.db.writer import settled, write
from console.errors import (
    ConflictException,
    ErrorCode,
    ServiceError,
    StateMachineDoesNotExist,
    ValidationException,
)
from console.integrations import unregistered
from console.models import Definition, LogRoute, MachineRevision, StateMachine, Tag
from console.models.key_scope import EVERYTHING
from console.statuses import MachineStatus, MachineType
from console.store.machines import log_groups, machines, revisions, tags

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from console.access import Principal

_MOST_CHARACTERS = 4_000_000
"""Maximum total length of the definitions in an answer."""
_AT_ONCE = 500
_NO_TRACING = {"enabled": False}
_MEMBERS = {
    "CreateStateMachine": {"name", "type", "tags", "definition", "roleArn", "tracingConfiguration"},
    "UpdateStateMachine": {"stateMachineArn", "definition", "roleArn", "tracingConfiguration"},
    "TagResource": {"resourceArn", "tags"},
    "UntagResource": {"resourceArn", "tagKeys"},
}
"""Action -> the parameters that a deployment sends."""


@dataclass(frozen=True, slots=True)
class Deployer:
    """The caller of a deployment, and its region."""

    principal: Principal
    region: str
    actor: audit.Actor

    def call(self, action: str, params: dict[str, Any]) -> Call:
        """Return a Step Functions call after checking its rights and parameters."""
        service = services.STATES
        project = self.principal.project
        if self.principal.scope is EVERYTHING:
            asgi.authorize(self.principal, action)
        else:
            resources = resources_of(service, action, params, project, self.region)
            asgi.authorize(self.principal, action, resources)
        shapes.check_params(service.operation(action), params)
        service.check_members(action, params)
        return Call(action, params, self.principal, self.region, self.actor)

    def arn_of(self, name: str) -> str:
        """Return the ARN of a state machine, from its name."""
        return arns.state_machine_arn(self.region, self.principal.project.account_id, name)


# -- describing ------------------------------------------------------------------------------------


def describe_machines(deployer: Deployer, hashes: Mapping[str, str]) -> dict[str, Any]:
    """Return name -> description of the state machine, None for a missing one.

    ``hashes``: name -> SHA-256 of the definition that the client has. A definition with that hash
    is omitted; ``warnings`` then has the calls of unregistered functions. State machines whose
    definitions would make the answer too large are omitted.
    """
    name_by_arn = {deployer.arn_of(name): name for name in hashes}
    for arn in name_by_arn:
        deployer.call("DescribeStateMachine", {"stateMachineArn": arn})
        deployer.call("ListTagsForResource", {"resourceArn": arn})
    rows = {row.arn: row for row in _rows_of(deployer, name_by_arn)}
    texts = _texts_of({row.definition_id for row in rows.values()})
    by_arn = _tags_of(rows)
    answer: dict[str, Any] = {}
    characters = 0
    for arn, name in name_by_arn.items():
        row = rows.get(arn)
        answer[name] = row and {
            "type": row.type,
            "roleArn": row.role_arn,
            "tracingConfiguration": json.loads(row.tracing) if row.tracing else _NO_TRACING,
            "tags": by_arn.get(arn, {}),
        }
        if row is None:
            continue
        text = texts[row.definition_id]
        if row.definition_id == hashes[name]:
            answer[name]["warnings"] = _warnings(deployer, text, row.type)
            continue
        answer[name]["definition"] = text
        characters += len(text)
        if characters > _MOST_CHARACTERS:
            break
    return answer


def _rows_of(deployer: Deployer, wanted_arns: Iterable[str]) -> list[StateMachine]:
    rows = StateMachine.objects.filter(project=deployer.principal.project)
    return [row for part in _parts(sorted(wanted_arns)) for row in rows.filter(arn__in=part)]


def _texts_of(keys: Iterable[str]) -> dict[str, str]:
    rows = Definition.objects.all()
    return {row.pk: row.text for part in _parts(sorted(keys)) for row in rows.filter(pk__in=part)}


def _tags_of(wanted_arns: Iterable[str]) -> dict[str, dict[str, str]]:
    by_arn: dict[str, dict[str, str]] = {}
    for part in _parts(sorted(wanted_arns)):
        for tag in Tag.objects.filter(arn__in=part).order_by("pk"):
            by_arn.setdefault(tag.arn, {})[tag.key] = tag.value
    return by_arn


def _parts(values: Sequence[str]) -> list[Sequence[str]]:
    return [values[start : start + _AT_ONCE] for start in range(0, len(values), _AT_ONCE)]


def _warnings(deployer: Deployer, definition: str, kind: str) -> list[str]:
    """Return the warnings of ValidateStateMachineDefinition on unregistered functions."""
    if not unregistered.may_call_functions(definition):
        return []
    params = {"definition": definition, "type": kind, "severity": "WARNING"}
    try:
        answer = settled(
            services.STATES.run(deployer.call("ValidateStateMachineDefinition", params))
        )
    except ServiceError:  # the key may not ask for it
        return []
    if not isinstance(answer, dict):
        return []
    return [each["message"] for each in answer["diagnostics"] if each["code"] == UNREGISTERED]


# -- changing --------------------------------------------------------------------------------------


@dataclass(slots=True)
class MachineChange:
    """The change of a state machine. ``create`` and ``update``: parameters of AWS's actions.

    ``kind``: the type for the check of the definition. ``refusal``: why the change is not made.
    """

    arn: str = ""
    create: dict[str, Any] = field(default_factory=dict)
    update: dict[str, Any] = field(default_factory=dict)
    new_tags: dict[str, str] = field(default_factory=dict)
    removed_tags: list[str] = field(default_factory=list)
    actions: list[str] = field(default_factory=list)
    kind: str = ""
    refusal: ServiceError | None = None

    @property
    def definition(self) -> str | None:
        """The new definition; None for no change."""
        return (self.create or self.update).get("definition")


def deploy_machines(deployer: Deployer, sent: Sequence[Any], path: str) -> list[dict[str, Any]]:
    """Change state machines; return an answer for each, in order.

    ``sent``: for each state machine a list of ``{"action": ..., "parameters": ...}``. An answer is
    an API error, or has ``warnings``: the calls of unregistered functions.
    """
    changes = [_checked(deployer, calls, path) for calls in sent]
    accepted = {each.arn: each for each in changes if each.refusal is None}
    if len(accepted) < sum(each.refusal is None for each in changes):
        raise ValidationException("machines: a state machine stands twice in it")
    _check_definitions(deployer, accepted)
    accepted = {arn: each for arn, each in accepted.items() if each.refusal is None}
    refused = write(partial(_write_changes, deployer, accepted))
    return [_answer(deployer, each, each.refusal or refused.get(each.arn)) for each in changes]


def _answer(
    deployer: Deployer, change: MachineChange, refusal: ServiceError | None
) -> dict[str, Any]:
    if refusal is not None:
        return {"__type": refusal.code, "message": refusal.message}
    if change.definition is None:
        return {"warnings": []}
    return {"warnings": _warnings(deployer, change.definition, change.kind)}


def _check_definitions(deployer: Deployer, changes: Mapping[str, MachineChange]) -> None:
    """Refuse changes with invalid definitions; a state machine's type cannot change."""
    rows = {row.arn: row for row in _rows_of(deployer, changes)}
    for arn, change in changes.items():
        row, text = rows.get(arn), change.definition
        if change.create:
            change.kind = change.create.get("type") or MachineType.STANDARD
        elif row is not None:
            change.kind = row.type
        is_there = row is not None and text is not None and _key_of(text) == row.definition_id
        try:
            if text is not None and (change.create or (row is not None and not is_there)):
                machines.check_definition(text, change.kind)
        except ServiceError as error:
            change.refusal = error


def _checked(deployer: Deployer, calls: Any, path: str) -> MachineChange:
    """Return the change of a state machine, refused if one of its calls would be."""
    change = MachineChange()
    try:
        if not isinstance(calls, list) or not calls:
            raise ValidationException("machines: got no list of calls for a state machine")
        for each in calls:
            _add_call(deployer, change, each)
    except ServiceError as error:
        change.refusal = error
        if error.code == ErrorCode.AccessDeniedException:
            project = deployer.principal.project
            refusals.record_refused(project, deployer.actor, "DeployStateMachine", path)
    return change


def _add_call(deployer: Deployer, change: MachineChange, sent: Any) -> None:
    action = sent.get("action") if isinstance(sent, dict) else None
    params = sent.get("parameters") if isinstance(sent, dict) else None
    if not isinstance(action, str) or action not in _MEMBERS or not isinstance(params, dict):
        raise ValidationException(
            f"machines: got the action {str(action)[:80]!r}, wanted {', '.join(_MEMBERS)} with"
            " parameters"
        )
    for name in params.keys() - _MEMBERS[action]:
        raise ValidationException(f"{action}: {name[:80]}: a deployment has no such parameter")
    if action in change.actions:
        raise ValidationException(f"machines: got {action} twice for a state machine, wanted once")
    deployer.call(action, params)
    if action == "CreateStateMachine":
        arns.check_name(params["name"])
        arns.check_role(params["roleArn"])
        arn = deployer.arn_of(params["name"])
        change.create = params
        change.new_tags = as_mapping(params.get("tags") or ())
        tags.check_tags(change.new_tags)
    else:
        arn = params["stateMachineArn" if action == "UpdateStateMachine" else "resourceArn"]
        arns.check_unlabelled(arn)
        if arn != deployer.arn_of(arns.parse_arn(arn, "stateMachine").text.rpartition(":")[2]):
            raise StateMachineDoesNotExist(f"State Machine Does Not Exist: '{arn}'")
        _add_update(change, action, params)
    if change.arn not in ("", arn):
        raise ValidationException(f"{action}: the calls of a change are about one state machine")
    change.arn = arn
    change.actions.append(action)
    if len(change.actions) > 1 and change.create:
        raise ValidationException(f"{action}: a new state machine takes no other call")


def _add_update(change: MachineChange, action: str, params: dict[str, Any]) -> None:
    if action == "UpdateStateMachine":
        change.update = params
        if params.get("roleArn") is not None:
            arns.check_role(params["roleArn"])
        if not {"definition", "roleArn", "tracingConfiguration"} & params.keys():
            raise ServiceError(ErrorCode.MissingRequiredParameter, machines.MISSING)
    elif action == "TagResource":
        change.new_tags = as_mapping(params["tags"])
        tags.check_tags(change.new_tags)
    else:
        change.removed_tags = params["tagKeys"]


_key_of = machines.sha256_of


def _write_changes(
    deployer: Deployer, changes: Mapping[str, MachineChange]
) -> dict[str, ServiceError]:
    """Write changes by ARN; return the refused changes. Inside a transaction, may run twice."""
    rows = {
        row.arn: row
        for part in _parts(sorted(changes))
        # the order of the locks is the same for all: else two deployments wait for each other
        for row in StateMachine.objects.select_for_update()
        .filter(project=deployer.principal.project, arn__in=part)
        .order_by("arn")
    }
    present_tags = _tags_of(changes)
    refused: dict[str, ServiceError] = {}
    room = _room(deployer) if any(each.create for each in changes.values()) else 0
    for arn, change in changes.items():
        row = rows.get(arn)
        try:
            if len({*present_tags.get(arn, ()), *change.new_tags}) > tags.MOST_TAGS:
                raise tags.too_many_tags(arn)
            if row is None and change.create:
                room -= 1
            _check_change(change, row, room, deployer.principal.project.name)
        except ServiceError as error:
            refused[arn] = error
    written = {arn: change for arn, change in changes.items() if arn not in refused}
    _insert_definitions(written.values())
    created = {arn: each for arn, each in written.items() if each.create and arn not in rows}
    updated = {arn: each for arn, each in written.items() if each.update}
    _insert_machines(deployer, created)
    _update_machines(deployer, updated, rows)
    tagged = created | {arn: each for arn, each in written.items() if not each.create}
    _write_tags(tagged)
    done = [(action, arn, "") for arn, each in tagged.items() for action in each.actions]
    audit.record_all(deployer.principal.project, deployer.actor, done)
    return refused


def _room(deployer: Deployer) -> int:
    """Return the number of state machines that the quota still allows."""
    project = deployer.principal.project
    rows = StateMachine.objects.filter(project=project, region=deployer.region)
    return quotas.quotas_of(project.name).state_machines - rows.count()


def _check_change(change: MachineChange, row: StateMachine | None, room: int, project: str) -> None:
    """Raise the API's error for a change. ``room``: what the change leaves of the quota."""
    if change.create:
        if row is not None:
            tracing = _tracing_text(change.create) or ""
            attributes = (change.kind, "", tracing, "", _key_of(change.create["definition"]))
            machines.same_or_refused(row, attributes)
        elif room < 0:
            limit = quotas.quotas_of(project).state_machines
            msg = f"State Machine Limit Exceeded: '{limit}'"
            raise ServiceError(ErrorCode.StateMachineLimitExceeded, msg)
        return
    if row is None:
        raise StateMachineDoesNotExist(f"State Machine Does Not Exist: '{change.arn}'")
    if row.status == MachineStatus.DELETING and change.update:
        raise ServiceError(
            ErrorCode.StateMachineDeleting, f"State Machine is being deleted: '{change.arn}'"
        )
    if row.type != change.kind:
        raise ConflictException(f"State Machine Was Changed Since: '{change.arn}'")


def _tracing_text(params: Mapping[str, Any]) -> str | None:
    """Return the tracing for its column; None if the parameters have none."""
    if "tracingConfiguration" not in params:
        return None
    tracing = params["tracingConfiguration"]
    return "" if not tracing or tracing == _NO_TRACING else json.dumps(tracing, sort_keys=True)


def _insert_definitions(changes: Iterable[MachineChange]) -> None:
    texts = {_key_of(each.definition): each.definition for each in changes if each.definition}
    present = {
        key
        for part in _parts(sorted(texts))
        # the deletion of a branch may be removing definitions: lock the existing ones
        for key in Definition.objects.select_for_update(no_key=True)
        .filter(pk__in=part)
        .order_by("pk")
        .values_list("pk", flat=True)
    }
    missing = [Definition(key, text) for key, text in texts.items() if key not in present]
    Definition.objects.bulk_create(missing, ignore_conflicts=True)


def _insert_machines(deployer: Deployer, changes: Mapping[str, MachineChange]) -> None:
    """Insert new state machines with their first revisions."""
    now_ms = clock.now_ms()
    rows = [
        StateMachine(
            project=deployer.principal.project,
            region=deployer.region,
            name=change.create["name"],
            arn=arn,
            type=change.kind,
            role_arn=change.create["roleArn"],
            definition_id=_key_of(change.create["definition"]),
            tracing=_tracing_text(change.create) or "",
            created_ms=now_ms,
            updated_ms=now_ms,
            edited_by=execution_rights.names_behind(deployer.actor),
        )
        for arn, change in changes.items()
    ]
    StateMachine.objects.bulk_create(rows)
    name = deployer.actor.name
    MachineRevision.objects.bulk_create(revisions.make_revision(row, 1, name) for row in rows)
    arns_with_logs = LogRoute.objects.filter(machine_arn__in=[*changes])
    former = set(arns_with_logs.values_list("machine_arn", flat=True))
    for row in rows:
        if row.arn in former:  # a state machine of the name logged before it was deleted
            log_groups.route_logs(row, now_ms)


def _update_machines(
    deployer: Deployer, changes: Mapping[str, MachineChange], rows: Mapping[str, StateMachine]
) -> None:
    """Update state machines, with a revision for each changed definition or role."""
    numbers = MachineRevision.objects.filter(state_machine__in=[rows[arn].pk for arn in changes])
    newest = dict(numbers.values_list("state_machine").annotate(Max("number")))
    stored: list[MachineRevision] = []
    changed_rows: list[StateMachine] = []
    for arn, change in changes.items():
        row, params = rows[arn], change.update
        columns = {
            "role_arn": params.get("roleArn"),
            "tracing": _tracing_text(params),
            "definition_id": None if change.definition is None else _key_of(change.definition),
        }
        differing = {
            name: value
            for name, value in columns.items()
            if value is not None and value != getattr(row, name)
        }
        in_revisions = not differing.keys().isdisjoint(revisions.KEPT)
        if in_revisions and row.pk not in newest:
            newest[row.pk] = 1
            stored.append(revisions.make_revision(row, 1, revisions.last_editor(row)))
        if change.definition is not None:
            row.edited_by = execution_rights.names_behind(deployer.actor)
        row.updated_ms = clock.now_ms()
        if differing:
            row.revision_id = str(uuid.uuid4())
        for name, value in differing.items():
            setattr(row, name, value)
        changed_rows.append(row)
        if in_revisions:
            number = newest[row.pk] + 1
            stored.append(revisions.make_revision(row, number, deployer.actor.name))
    StateMachine.objects.bulk_update(changed_rows, _CHANGED, batch_size=50)
    MachineRevision.objects.bulk_create(stored)


_CHANGED = ("role_arn", "tracing", "definition", "edited_by", "updated_ms", "revision_id")


def _write_tags(changes: Mapping[str, MachineChange]) -> None:
    new = [
        Tag(arn=arn, key=key, value=value)
        for arn, change in changes.items()
        for key, value in change.new_tags.items()
    ]
    Tag.objects.bulk_create(
        new, update_conflicts=True, unique_fields=["arn", "key"], update_fields=["value"]
    )
    for arn, change in changes.items():
        if change.removed_tags:
            Tag.objects.filter(arn=arn, key__in=change.removed_tags).delete()
