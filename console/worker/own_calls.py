"""How does a Task call Step Functions of this server?  In this process, as its execution.

No request leaves the process, so none is refused while the web processes are away. A call whose
change is one transaction - above all StartExecution - is committed together with what becomes of
its task:

1. a worker is killed before the commit: there is no child, and the task is called again;
2. it is killed after the commit: there is the one child, and the task knows it;
3. the task ends meanwhile, by its time or a Stop: its row is closed, and no child is started.

While the database is out the call waits for it, and is made again if it was not committed.
"""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from email.utils import formatdate
from typing import TYPE_CHECKING, Any

import structlog
from botocore.exceptions import BotoCoreError, ClientError
from botocore.parsers import create_parser
from botocore.serialize import create_serializer

from console import execution_rights, integrations, own_api
from console.access import Denied, Principal
from console.errors import AccessDeniedException, ServiceError
from console.integrations import aws, names, targets
from console.models import Execution, Role
from console.store import claims, endings, executions, jobs, tasks
from console.store.audit import Actor
from console.store.births import Parent
from console.store.writer import is_outage, release_connection
from console.worker.guard import insist

import engine  # isort: skip

if TYPE_CHECKING:
    from collections.abc import Callable

    from botocore.model import OperationModel

    from console.integrations import Outcome, Task
    from console.store.pending import Pending

log = structlog.get_logger(__name__)
_PROTOCOL = "json"
_INSIST_S = 600.0
"""How long a call without a time of its own waits for the database; then its task runs again."""


# -- who calls -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Own:
    """This server's Step Functions as a client of botocore has them (``integrations.Home``).

    ``trusted``: for the looks at what a call has started, and for its end.
    """

    work: claims.Work
    region: str = ""
    trusted: bool = False

    def client(self, region: str) -> Own:
        """Return what takes the calls."""
        return Own(self.work, region, self.trusted)

    def _make_api_call(self, name: str, sent: dict[str, Any]) -> dict[str, Any]:
        """Call an operation; return or raise what a client of botocore does."""
        model = names.model(targets.OWN).operation_model(name)
        return _as_botocore(model, lambda: self.begin(model, sent).now())

    def begin(self, model: OperationModel, sent: dict[str, Any]) -> Pending[dict[str, Any]]:
        """Return the answer to an operation as a change; raise ``ServiceError``."""
        return own_api.answer(self._caller(model.name), model.name, _wire_params(model, sent))

    def _caller(self, action: str) -> own_api.Caller:
        """Return the execution as who calls; raise AccessDeniedException if it has no rights."""
        work = self.work
        execution = executions.with_project(work.execution_id)
        try:
            principal = self._principal(execution, action)
        except Denied as error:
            raise AccessDeniedException(str(error)) from None
        people = execution_rights.people_of(execution)
        actor = Actor(execution.started_by, execution=execution.arn, acting_for=people)
        waits = work.task if work.pattern.startswith(".sync") else None
        parent = Parent(execution.pk, execution.depth or 0, waits)
        return own_api.Caller(principal, actor, self.region, self.trusted, parent)

    def _principal(self, execution: Execution, action: str) -> Principal:
        if self.trusted:
            return execution_rights.principal_with(execution, Role.OPERATOR)
        return execution_rights.principal_of(execution, action)


# -- the call of a task ----------------------------------------------------------------------------


def is_own(task: Task) -> bool:
    """Tell whether a task calls Step Functions of this server."""
    return task.service in tasks.NESTED and targets.is_here(targets.OWN, task.machine)


def deliver(work: claims.Work, task: Task) -> Outcome | None:
    """Make the call of a task and record its outcome with it; return it.

    None if the task had ended before, so that nothing was called.
    """
    asked = aws.build_request(task)
    if not isinstance(asked, aws.Request):
        return _recorded(work, integrations.apply_pattern(task, asked))
    seconds = min(task.timeout_s or _INSIST_S, _INSIST_S)
    try:
        return insist(lambda: _attempt(work, task, asked), seconds)
    except Exception as error:
        if is_outage(error):
            raise  # the sweep finds the task in nobody's hands, and it is called again
        log.exception("a call raised")
        return _recorded(work, integrations.Failed(type(error).__name__, str(error)))


def _attempt(work: claims.Work, task: Task, asked: aws.Request) -> Outcome | None:
    model = asked.operation.model

    def outcome_of(send: Callable[[], dict[str, Any]]) -> Outcome:
        found = aws.request_outcome(task, asked, lambda: _as_botocore(model, send))
        return integrations.apply_pattern(task, found)

    try:
        pending = Own(work, task.region).begin(model, asked.sent)
    except Exception as error:
        if is_outage(error):
            raise
        if not isinstance(error, ServiceError | BotoCoreError):
            log.exception("an operation of our own API raised")
        return _recorded(work, outcome_of(_raising(error)))
    release_connection()

    def store(send: Callable[[], dict[str, Any]]) -> Outcome | None:
        if not claims.still_started(work):
            return None
        outcome = outcome_of(send)
        return outcome if record(work, outcome) else None

    return pending.inside(store).now()


def _raising(error: Exception) -> Callable[[], dict[str, Any]]:
    def send() -> dict[str, Any]:
        raise error

    return send


def _recorded(work: claims.Work, outcome: Outcome) -> Outcome | None:
    return outcome if insist(lambda: record(work, outcome), _INSIST_S) else None


def record(work: claims.Work, outcome: Outcome) -> bool:
    """Write down what came of a call; False if its task had ended before.

    Its end, or that it goes on elsewhere.
    """
    if isinstance(outcome, integrations.Submitted):
        about = (work.task, outcome.output, outcome.job, outcome.look_s)
        return jobs.submit(work.execution_id, *about)
    return endings.finish(work.execution_id, _message(work, outcome))


def _message(
    work: claims.Work, outcome: integrations.Succeeded | integrations.Failed
) -> engine.TaskSucceeded | engine.TaskFailed:
    if isinstance(outcome, integrations.Succeeded):
        return engine.TaskSucceeded(work.task, outcome.output)
    return engine.TaskFailed(work.task, outcome.error, outcome.cause, outcome.refused)


# -- answers as botocore has them ------------------------------------------------------------------


def _wire_params(model: OperationModel, sent: dict[str, Any]) -> dict[str, Any]:
    """Return parameters as the wire has them; raise ``ParamValidationError``."""
    request = create_serializer(_PROTOCOL).serialize_to_request(sent, model)
    params: dict[str, Any] = json.loads(request["body"])
    return params


def _as_botocore(model: OperationModel, send: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Return an answer, or raise a refusal, as botocore reads it from the wire."""
    try:
        status, body = 200, send()
    except ServiceError as error:
        status, body = error.status, {"__type": error.code, "message": error.message}
    except Exception as error:
        if is_outage(error) or isinstance(error, BotoCoreError):
            raise
        status, body = 500, {"__type": "InternalFailure", "message": "The processing has failed"}
    data = json.dumps(body).encode()
    headers = {
        "content-length": str(len(data)),
        "content-type": "application/x-amz-json-1.0",
        "date": formatdate(usegmt=True),
        "x-amzn-requestid": str(uuid.uuid4()),
    }
    shape = model.output_shape
    answer: dict[str, Any] = create_parser(_PROTOCOL).parse(
        {"body": data, "headers": headers, "status_code": status}, shape
    )
    if status != 200:  # noqa: PLR2004 - HTTP's OK
        raise ClientError(answer, model.name)
    return answer
