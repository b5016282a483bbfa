"""The samples' functions serve the machines of the samples and no others."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from console import access
from console.features.targets import calls, explain
from console.features.test_state.state import try_state
from console.integrations import Failed, TaskAttempt, invoke, targets
from console.models import Activity, StateMachine
from console.samples import MACHINES, is_sample, sample_role
from console.samples.functions import FUNCTIONS
from console.store.machines import machines
from console.store.people.sample_project import load_samples
from console.store.tasks import claim
from tests.console.store.helpers import ROLE, create, ended, function, one, start

import engine  # isort: skip

if TYPE_CHECKING:
    from pytest_django.fixtures import Settings

    from console.models import Project
    from console.worker import Embedded

LAMBDA = "arn:aws:lambda:us-east-1:123456789012:function:{}"
NOTIFY = one("N", **function("NotifyCustomer"))
OWN = {"NotifyCustomer": f"{__name__}:own", "activity:Add": f"{__name__}:own"}
CUSTOMER = {"customer": {"email": "a@b"}, "subject": "s"}


def own(event: Any, _: Any) -> Any:
    """Answer for the team."""
    return ["own", event]


@pytest.fixture(autouse=True)
def nothing_said(settings: Settings) -> None:
    """Nobody has registered anything."""
    settings.STATEYARD_FUNCTIONS, settings.STATEYARD_TARGETS = {}, {}


def sample(project: Project, name: str) -> StateMachine:
    """Return a sample machine as a server has it after its first start."""
    if not StateMachine.objects.filter(project=project).exists():
        load_samples(project)
    return StateMachine.objects.get(project=project, name=name)


def test_an_own_machine_does_not_call_a_sample_function(project: Project, worker: Embedded) -> None:
    """A name that nobody registered is unknown, though a sample has a function of that name."""
    del worker
    load_samples(project)
    execution = ended(start(create(project, NOTIFY), CUSTOMER))
    assert execution.error == "Lambda.ResourceNotFoundException"


def test_a_sample_machine_runs_by_itself(project: Project, worker: Embedded) -> None:
    """Functions and activities that came with it do its work, whoever has edited it since."""
    del worker
    execution = ended(start(sample(project, "FunWithMath"), [3, 2]))
    assert json.loads(str(execution.output)) == [5, 1]
    machine = sample(project, "LookupCustomerInfo")
    machines.update_machine(machine, definition=json.dumps(NOTIFY))
    machine.refresh_from_db()
    execution = ended(start(machine, CUSTOMER))
    assert json.loads(str(execution.output)) == {"sentTo": "a@b", "subject": "s"}


def test_an_own_function_comes_first_everywhere(
    project: Project, settings: Settings, request: pytest.FixtureRequest
) -> None:
    """Also in sample machines: who registers a name means it."""
    settings.STATEYARD_FUNCTIONS = OWN
    request.getfixturevalue("worker")
    machine = sample(project, "FunWithMath")
    assert json.loads(str(ended(start(machine, [3, 2])).output)) == [["own", [3, 2]], 1]
    execution = ended(start(create(project, NOTIFY, "mine"), 7))
    assert json.loads(str(execution.output)) == ["own", 7]


def test_the_workers_of_a_team_get_the_tasks_of_their_activity(
    project: Project, worker: Embedded
) -> None:
    """``Add`` is a sample's activity, too; only tasks of the sample are worked by this server."""
    load_samples(project)
    arn = Activity.objects.get(project=project, name="Add").arn
    mine = start(create(project, one("A", Type="Task", Resource=arn)), [1, 2])
    theirs = start(sample(project, "FunWithMath"), [3, 2])
    assert ended(theirs).status == "SUCCEEDED"
    worker.sweep()  # which offers whatever it takes for work of this server
    work = claim.take_activity_task(arn, "a worker of the team")
    assert work is not None
    assert (work.execution_arn, work.input) == (mine.arn, "[1, 2]")
    assert work.dispatches == 1


M = targets.MachineKey("default", "M")


@pytest.mark.parametrize(
    ("named", "functions", "of_sample", "entry"),
    [
        ({}, {}, True, "samples: NotifyCustomer"),
        ({"*": {"endpoint_url": "http://x"}}, {}, True, "samples: NotifyCustomer"),
        ({"lambda": {"endpoint_url": "http://x"}}, {}, True, ""),
        ({}, OWN, True, "functions: NotifyCustomer"),
        ({"lambda": {"endpoint_url": "http://x"}}, OWN, True, "functions: NotifyCustomer"),
        ({}, {"Notify*": "json:loads"}, True, "functions: Notify*"),
        ({}, {}, False, ""),
        ({"*": {"endpoint_url": "http://x"}}, {}, False, ""),
        ({"machines": {"M": {"lambda": {"endpoint_url": "http://x"}}}}, {}, True, ""),
        ({"machines": {"M": {"functions": OWN}}}, {}, True, "machines: M: functions: "),
    ],
)
def test_what_comes_before_what(
    settings: Settings, db: None, named: Any, functions: Any, of_sample: bool, entry: str
) -> None:
    """Own functions, then a target that names Lambda, then the function of the sample."""
    del db  # the settings of the project are read from it
    settings.STATEYARD_TARGETS, settings.STATEYARD_FUNCTIONS = named, functions
    arn = LAMBDA.format("NotifyCustomer")
    function = targets.find_registered_function("NotifyCustomer", arn, M, sample=of_sample)
    assert (function or ("", ""))[1].startswith(entry)
    assert (function is None) == (entry == "")
    task = TaskAttempt("lambda", arn, "", "", "{}", "k", "arn:aws:states:r:a:execution:M:x", "")
    if not named and not functions and not of_sample:
        outcome = invoke.call_by_arn(task)
        assert isinstance(outcome, Failed)
        assert outcome.error == "Lambda.ResourceNotFoundException"
    resource = engine.parse_resource(arn)
    assert resource is not None
    plan = explain.plan_call(resource, None, M, sample=of_sample)
    assert entry in plan.entry
    assert (plan.problem != "") == (not entry and "lambda" not in str(named) and "*" not in named)


def test_a_state_of_a_sample_can_be_tried(project: Project) -> None:
    """TestState is given the role: with the samples' own the function is there."""
    person, _, _ = access.first_owner()
    principal = access.Principal(person, project, "owner")
    asked = {"definition": json.dumps(NOTIFY["States"]["N"]), "input": json.dumps(CUSTOMER)}
    for role, status in ((sample_role(project.account_id), "SUCCEEDED"), (ROLE, "FAILED")):
        answer = try_state(principal, "us-east-1", asked | {"roleArn": role})
        assert answer["status"] == status


def test_pages_tell_sample_functions_apart(project: Project, settings: Settings) -> None:
    """A project without samples has none on its page; a name of one's own hides the sample's."""
    assert calls.list_sample_functions(project) == []
    load_samples(project)
    assert len(calls.list_sample_functions(project)) == len(FUNCTIONS)
    settings.STATEYARD_FUNCTIONS = OWN
    shown = {function.name for function in calls.list_sample_functions(project)}
    assert "NotifyCustomer" not in shown
    assert all(function.sample for function in calls.list_sample_functions(project))


def test_samples_are_known_by_their_role(project: Project) -> None:
    """As those of earlier starts are, which had no other mark."""
    load_samples(project)
    roles = set(StateMachine.objects.values_list("role_arn", flat=True))
    assert roles == {sample_role(project.account_id)}
    assert StateMachine.objects.count() == len(MACHINES)
    assert is_sample("arn:aws:iam::123456789012:role/stateyard-samples")
    assert not is_sample(ROLE)
    assert not is_sample("arn:aws:iam::123456789012:role/x/stateyard-samples")
