"""Start a sample state machine with one click, for readers who have none yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings
from django.contrib import messages
from django.http import Http404
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from console.errors import ServiceError
from console.samples import MACHINES, sample_role
from console.store.executions.start import start_execution
from console.store.machines import machines
from console.web.core.scope import actor_of, require, scope_of

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse


@require_POST
def start_sample(request: HttpRequest) -> HttpResponse:
    """Create a sample state machine, start it, and redirect to the execution.

    Without a name it is the one with most to see. A state machine of this name and definition is
    used again; another one of this name is left alone, and the answer says so.
    """
    scope = scope_of(request)
    require(scope, "CreateStateMachine")
    require(scope, "StartExecution")
    name = request.POST.get("sample", "") or first_sample()
    sample = next((sample for sample in MACHINES if sample.name == name), None)
    if sample is None:
        raise Http404(f"There is no sample “{name}”.")
    actor = actor_of(scope)
    try:
        machine = machines.create_machine(
            scope.project,
            scope.region,
            name=sample.name,
            definition=sample.definition,
            role_arn=sample_role(scope.project.account_id),
            actor=actor,
        )
        execution = start_execution(machine, input=sample.input, ahead=True, actor=actor)
    except ServiceError as error:
        messages.error(request, f"The sample was not started: {error.message}")
        return redirect("machines")
    return redirect("execution", machine.name, execution.name)


def first_sample() -> str:
    """Return the richest sample that can run here: some need the sample functions."""
    return "OrderProcessing" if settings.STATEYARD_SAMPLE_FUNCTIONS else "HelloWorld"
