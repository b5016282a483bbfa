"""Create an approval link on a task's page, and send it to a notification target."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.http import Http404
from django.urls import reverse
from django.views.decorators.http import require_POST

from console.errors import ServiceError
from console.events.addresses import KINDS, kind_of_row
from console.feature import has_feature
from console.features.approvals import messages as approval_messages
from console.features.approvals.forms import ApprovalLinkForm
from console.features.approvals.messages import ApprovalMessage
from console.features.approvals.store import ACTION, create_approval_link
from console.features.notifications import notices
from console.features.tasks.views import render_page
from console.models import EventTarget
from console.store.tasks import manual
from console.web.core.forms import LINK_HOURS
from console.web.core.scope import actor_of, require, scope_of

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from console.models import Execution, TaskRow
    from console.web.core.scope import Scope


def link_form_context(scope: Scope, question: str) -> dict[str, Any]:
    """Return the context of the form that creates a link."""
    return {
        "may_link": scope.may(ACTION),
        "choices": LINK_HOURS,
        "link": {"hours": 24, "show": True, "note": question},
        "channels": [(str(each.pk), _channel_words(each)) for each in _channels(scope)],
    }


@require_POST
def make_link(
    request: HttpRequest, machine_name: str, execution_name: str, number: int
) -> HttpResponse:
    """Create a link for an approver without an account, and show it once."""
    scope = scope_of(request)
    require(scope, ACTION)
    execution = scope.own_execution(machine_name, execution_name)
    row = manual.find_task(execution, number)
    if row is None:
        raise Http404(f"This execution has no task {number}.")
    sent = ApprovalLinkForm(request.POST).values
    try:
        token = create_approval_link(
            execution,
            row.task,
            sent["hours"],
            actor_of(scope),
            note=sent["note"],
            with_input=sent["show"],
        )
    except ServiceError as refused:
        return render_page(
            request, machine_name, execution, row, status=422, problem=refused.message, link=sent
        )
    address = request.build_absolute_uri(reverse("approval", args=[token]))
    sending: dict[str, Any] = {}
    if sent["send"]:
        sending = _send_link(scope, execution, row, address, sent)
    hours = sent["hours"]
    return render_page(request, machine_name, execution, row, made=address, hours=hours, **sending)


def _send_link(
    scope: Scope, execution: Execution, row: TaskRow, page: str, sent: dict[str, Any]
) -> dict[str, Any]:
    """Send a link to a notification target; return the outcome."""
    target = next((each for each in _channels(scope) if str(each.pk) == sent["send"]), None)
    if target is None:
        return {"unsent": "This notification was deleted."}
    message = ApprovalMessage(
        question=sent["note"],
        step=row.state,
        machine=execution.state_machine_arn.rpartition(":")[2],
        execution=execution.name,
        maker=actor_of(scope).name,
        page=page,
    )
    try:
        approval_messages.send_approval(message, target.address, scope.project.name)
    except notices.Undelivered as problem:
        return {"unsent": str(problem)}
    return {"sent_to": _channel_words(target)}


def _channels(scope: Scope) -> list[EventTarget]:
    """Return the rules' targets that people read (mail, chat); empty without notifications."""
    if not has_feature("notifications"):
        return []
    targets = EventTarget.objects.filter(rule__project=scope.project, rule__region=scope.region)
    return [
        target
        for target in targets.select_related("rule").order_by("rule__name", "target_id")
        if kind_of_row(target.address) in approval_messages.CHANNELS
    ]


def _channel_words(target: EventTarget) -> str:
    """Describe a target; the URL of a web request is secret."""
    kind = kind_of_row(target.address)
    name = target.address.removeprefix("mailto:") if kind == "email" else KINDS[kind]
    return f"{name} (rule {target.rule.name})"
