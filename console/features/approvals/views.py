"""View of the approver's page, on which a person without an account answers one task."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from django.contrib.auth.decorators import login_not_required
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_http_methods

from console.errors import ServiceError
from console.features.approvals import store as approval_links
from console.features.approvals.forms import ApprovalForm
from console.features.tasks.forms import comment_of
from console.masking import masked_execution
from console.web.core.scope import render
from console.web.execution import waiting

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

_LONGEST = 20_000
_WORDS = {"approve": "You approved it.", "reject": "You rejected it."}
_TONES = {"approve": "succeeded", "reject": "failed"}


@login_not_required  # the link is the right, to answer this one task and nothing else
@sensitive_variables("token")
@require_http_methods(["GET", "HEAD", "POST"])
def approval_page(request: HttpRequest, token: str) -> HttpResponse:
    """Show ``/approval/TOKEN/``. A GET changes nothing; a POST answers the task."""
    form = ApprovalForm(request.POST)
    sent = form.values
    try:
        if request.method == "POST" and sent["act"] in _WORDS:
            approval = approval_links.open_approval(token)
            approval_links.answer_by_link(
                token, approve=sent["act"] == "approve", name=sent["name"], comment=sent["comment"]
            )
            return _confirm_answer(request, approval, sent)
        approval = approval_links.open_approval(token)
        problem = "Choose Approve or Reject." if request.method == "POST" else ""
    except approval_links.ApprovalClosed as why:
        return _closed(request, why)
    except ServiceError as refused:
        problem = refused.message
        try:
            approval = approval_links.open_approval(token)
        except approval_links.ApprovalClosed as why:
            return _closed(request, why)
    return _opened(request, approval, problem, sent)


def _opened(
    request: HttpRequest, approval: approval_links.Approval, problem: str, sent: dict[str, Any]
) -> HttpResponse:
    execution, row = approval.execution, approval.task
    shown = ""
    if approval.with_input:
        shown = _readable(masked_execution.masked_execution(execution).of_task(row.task, row.input))
    answer = request.GET.get("answer", "")
    context = {
        "approval": approval,
        "question": approval.note or comment_of(execution, row),
        "answer": answer if answer in _WORDS else "",
        "task": waiting.open_task(row),
        "execution": execution,
        "input": shown,
        "problem": problem,
        "typed": sent,
    }
    response = render(request, "approvals/approval.html", context, status=422 if problem else 200)
    response["X-Robots-Tag"] = "noindex"
    return response


def _readable(text: str) -> str:
    """Return a payload line by line, cut at a readable length."""
    with suppress(ValueError, RecursionError):
        text = json.dumps(json.loads(text), ensure_ascii=False, indent=2)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _confirm_answer(
    request: HttpRequest, approval: approval_links.Approval, sent: dict[str, Any]
) -> HttpResponse:
    """Confirm to the reader what was recorded."""
    act = sent["act"]
    context = {"words": _WORDS[act], "answered": _TONES[act], "approval": approval, "sent": sent}
    response = render(request, "approvals/approval_closed.html", context)
    response["X-Robots-Tag"] = "noindex"
    return response


def _closed(request: HttpRequest, why: approval_links.ApprovalClosed) -> HttpResponse:
    context = {"words": str(why), "advice": why.advice}
    response = render(request, "approvals/approval_closed.html", context, status=410)
    response["X-Robots-Tag"] = "noindex"
    return response
