"""Views of bulk actions: the dry run of an action, and the progress of a job."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods

import engine
from console.feature import has_feature
from console.features.bulk import outcomes, replays, store
from console.features.bulk.forms import BulkForm, JobForm
from console.features.bulk.models import BulkItem, BulkJob
from console.models import Definition
from console.statuses import BulkAction, BulkItemStatus, BulkJobStatus
from console.store.executions import redrive
from console.store.executions.refusals import ACTIONS
from console.store.state.pause import CLOCKS
from console.web.core.addresses import page_address
from console.web.core.scope import actor_of, render, require, scope_of
from console.web.execution.action_views import runs_only_fail
from console.web.execution.root_cause import root_cause_of
from console.web.search import scan
from console.web.search.filters import ExecutionFilters

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from django.http import HttpRequest

    from console.models import Execution
    from console.web.core.scope import Scope
    from engine import Graph

SHOWN = 200
_PAGE = 100
_JOBS = 50
_MOST_ROOTS = 20
"""Number of executions whose root cause (the state before a Fail state) is searched."""
_MOST_OTHERS = 400
"""Maximum number of executions in a URL."""
_OF_PAUSE = (BulkAction.PAUSE, BulkAction.RESUME)
_SLOW_POLL_S = 5
"""Poll interval after the end of a job with running executions."""
WORDS = {
    "stop": (
        "Stop",
        "stopped",
        "The executions are aborted. Work already done is not undone.",
    ),
    "redrive": (
        "Redrive",
        "redriven",
        "Each continues with its own ARN and definition, at its unsuccessful states.",
    ),
    "start": (
        "Start again",
        "started again",
        "Each is started as a new execution with the same input and the current state machine.",
    ),
    "pause": (
        "Pause",
        "paused",
        "Each enters no state until it is resumed. Executions that start later are not paused.",
    ),
    "resume": ("Resume", "resumed", "Each continues from where the pause stopped it."),
    "replay": (
        "Replay",
        "replayed",
        (
            "Each is repeated as a new execution that begins at the failed state, with the "
            "recorded input and the current definition. Earlier states do not run again."
        ),
    ),
}
RESULTS: dict[str, tuple[str, str]] = {
    BulkItemStatus.WAITING: ("idle", "Waiting"),
    BulkItemStatus.ACTING: ("running", "Under way"),
    BulkItemStatus.DONE: ("succeeded", "Done"),
    BulkItemStatus.REFUSED: ("failed", "Refused"),
}


@require_http_methods(["GET", "POST"])
def bulk_page(request: HttpRequest) -> HttpResponse:
    """Show ``/executions/bulk/``: the jobs, or the dry run of an action; a POST creates a job."""
    scope = scope_of(request)
    sent = BulkForm(request.POST if request.method == "POST" else request.GET).values
    action = sent["action"]
    if request.method == "GET" and not action:
        jobs = list(BulkJob.objects.filter(project=scope.project).order_by("-pk")[:_JOBS])
        results = outcomes.count_results(jobs)
        context = {"section": "executions", "jobs": jobs, "results": results}
        return render(request, "bulk/job_list.html", context)
    if action not in ACTIONS or (action in _OF_PAUSE and not has_feature("pause")):
        raise Http404(f"There is no bulk action “{action}”.")
    require(scope, ACTIONS[action])
    if request.method == "GET":
        return _render_dry_run(request, scope, action)
    planned = store.plan_job(scope.project, action, parse_ranges(sent["numbers"]))
    if not planned.chosen:
        messages.error(request, "No execution is selected.")
        return redirect(page_address(scope, "executions"))
    job = store.create_job(
        *(planned, scope.project, actor_of(scope), sent["asked"]), **_options(action, sent)
    )
    return redirect(page_address(scope, "bulk-job", str(job.pk)))


def _options(action: str, sent: Mapping[str, str]) -> dict[str, Any]:
    """Return the parameters of a job from its form."""
    if action == BulkAction.STOP:
        return {"error": sent["error"], "cause": sent["cause"]}
    if action != BulkAction.PAUSE:
        return {}
    stops_clock = CLOCKS.get(sent["clock"])
    if stops_clock is None:
        raise Http404(f"Timers cannot do {sent['clock']!r} during a pause.")
    return {"stops_clock": stops_clock, "note": sent["note"]}


def _render_dry_run(request: HttpRequest, scope: Scope, action: str) -> HttpResponse:
    filters = scan.check_machine_name(scope, None, ExecutionFilters.of(request.GET))
    marked = [
        int(number) for number in request.GET.getlist("x") if re.fullmatch(r"\d{1,15}", number)
    ]
    more = False
    if request.GET.get("all"):
        if filters.problems:
            raise Http404(" ".join(filters.problems.values()))
        keys, more = scan.all_keys(scope, None, filters, store.MOST)
        marked = [number for _, number in keys]
    planned = store.plan_job(scope.project, action, marked)
    replayed = None
    if action == BulkAction.REPLAY:
        replayed = replays.plan_replays(planned.eligible)
        planned = replace(planned, refusals={**planned.refusals, **replayed.refusals})
    verb, done_word, meaning = WORDS[action]
    context = _futile_context(scope, planned) | {
        "replayed": replayed,
        "section": "executions",
        "plan": planned,
        "verb": verb,
        "done": done_word,
        "meaning": meaning,
        "more": more,
        "most": store.MOST,
        "shown": SHOWN,
        "eligible": planned.eligible,
        "excluded": planned.excluded,
        "me": scope.principal.user.get_username(),
        "numbers": ranges_text([execution.pk for execution in planned.chosen]),
        "asked": filters.address if request.GET.get("all") else "",
        "any_paused": any(hasattr(execution, "pause") for execution in planned.chosen),
        "back": f"{reverse('executions')}?{filters.address}",
    }
    return render(request, "bulk/dry_run.html", context)


def _futile_context(scope: Scope, planned: store.BulkPlan) -> dict[str, Any]:
    """Return executions that would fail again right after a redrive, and their possible replays.

    ``futile``: number -> the state to replay from, None if unknown; ``others``: a query for the
    listed executions without these.
    """
    if planned.action != BulkAction.REDRIVE:
        return {}
    listed = planned.eligible[:SHOWN]
    futile = _executions_with_only_fail(listed)
    roots = {
        each.pk: root_cause_of(scope.shown(each)) if each.state_machine else None
        for each in futile[:_MOST_ROOTS]
    } | dict.fromkeys((each.pk for each in futile[_MOST_ROOTS:]), None)
    others = [execution for execution in planned.eligible if execution.pk not in roots]
    return {
        "futile": roots,
        "checked": len(listed),
        "others": urlencode([("x", execution.pk) for execution in others[:_MOST_OTHERS]])
        if len(others) <= _MOST_OTHERS
        else "",
        "again_from_start": urlencode([("x", each.pk) for each in futile]),
    }


def _executions_with_only_fail(executions: Sequence[Execution]) -> list[Execution]:
    """Return the executions whose redrive would run only a Fail state."""
    again = redrive.repeated_states_of([execution.pk for execution in executions])
    numbers = {execution.definition_id for execution in executions}
    texts = dict(Definition.objects.filter(pk__in=numbers).values_list("pk", "text"))
    graphs = {number: _graph_of(text) for number, text in texts.items()}
    return [
        execution
        for execution in executions
        if (graph := graphs.get(execution.definition_id)) is not None
        and runs_only_fail(graph, again[execution.pk])
    ]


def _graph_of(text: str) -> Graph | None:
    try:
        return engine.build_graph(engine.parse_stored(text))
    except engine.DefinitionError:  # stored by a version that checked less
        return None


@require_http_methods(["GET", "POST"])
def job_page(request: HttpRequest, number: int) -> HttpResponse:
    """Show ``/executions/bulk/<id>/``: the progress of a job and the outcome of each item."""
    scope = scope_of(request)
    job = BulkJob.objects.filter(project=scope.project, pk=number).first()
    if job is None:
        raise Http404(f"There is no bulk job {number}.")
    if request.method == "POST":
        require(scope, ACTIONS[job.action])
        store.pause_or_resume(
            job, on=JobForm(request.POST).values["act"] == "resume", actor=actor_of(scope)
        )
        return redirect(request.get_full_path())
    context = _progress_context(job, request.GET.get("result", ""), request.GET.get("after", ""))
    if request.GET.get("seen") == context["seen"]:
        return HttpResponse(status=204)
    context["may_switch"] = scope.may(ACTIONS[job.action])
    return render(request, "bulk/job.html", context)


def _progress_context(job: BulkJob, result: str, after: str) -> dict[str, Any]:
    counts = store.count_items(job)
    items_of_job = BulkItem.objects.filter(job=job).order_by("position")
    if result in RESULTS:
        items_of_job = items_of_job.filter(status=result)
    if re.fullmatch(r"\d{1,6}", after):
        items_of_job = items_of_job.filter(position__gt=int(after))
    items = list(items_of_job[: _PAGE + 1])
    over = counts.get(BulkItemStatus.DONE, 0) + counts.get(BulkItemStatus.REFUSED, 0)
    acting = counts.get(BulkItemStatus.ACTING, 0)
    verb, done_word, _ = WORDS[job.action]
    outcome = outcomes.count_outcomes(job)
    statuses = outcomes.statuses_now(job, items[:_PAGE])
    ended = [outcome.succeeded, outcome.failed, outcome.running] if outcome else []
    moving = outcome is not None and outcome.running > 0
    return {
        "section": "executions",
        "job": job,
        "verb": verb,
        "done_word": done_word,
        "over": over,
        "results": [(key, *RESULTS[key], counts.get(key, 0)) for key in RESULTS],
        "result": result if result in RESULTS else "",
        "items": [
            (item, *RESULTS[item.status], statuses.get(item.position)) for item in items[:_PAGE]
        ],
        "outcome": outcome,
        "summary": outcomes.count_results([job])[job.pk],
        "poll_s": 1 if job.status != BulkJobStatus.DONE else _SLOW_POLL_S if moving else 0,
        "after": items[_PAGE - 1].position if len(items) > _PAGE else "",
        "seen": "-".join(map(str, (job.status, over, acting, *ended))),
    }


# -- numbers ---------------------------------------------------------------------------------------


def ranges_text(chosen: Sequence[int]) -> str:
    """Write numbers as ranges, ``1-5,9``, so that a form keeps the displayed executions."""
    parts: list[list[int]] = []
    for number in sorted(chosen):
        if parts and parts[-1][-1] == number - 1:
            parts[-1] = [parts[-1][0], number]
        else:
            parts.append([number])
    return ",".join("-".join(map(str, part)) for part in parts)


def parse_ranges(text: str) -> list[int]:
    """Parse the result of ``ranges_text``, up to the maximum of a job."""
    numbers: list[int] = []
    for first, last in re.findall(r"(\d{1,15})(?:-(\d{1,15}))?", text):
        room = store.MOST - len(numbers)
        numbers += range(int(first), min(int(last or first), int(first) + room - 1) + 1)
    return numbers
