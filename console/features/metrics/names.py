"""The table of all metrics: names, units, dimensions, meanings.

Names, units and dimensions are the same as in AWS's namespace ``AWS/States``.
``docs/reference/metrics.md`` has a row for each metric; a test compares the two.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

NAMESPACE = "AWS/States"


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric.

    ``dimension``: the name of its CloudWatch dimension, "" for a metric of the whole account.
    ``group``: the rows that it is computed from: ``executions``, ``tasks``, ``limits`` (throttled
    calls), ``near`` (executions near a limit), or ``gauges`` (the current state).
    """

    name: str
    unit: str
    dimension: str
    group: str
    meaning: str

    def dimension_of(self, resource: str) -> tuple[str, str]:
        """Return name and value of a series' dimension, from its stored resource.

        A resource is the dimension's value, such as an ARN. In the group ``limits`` it has the
        name, too: ``APIName=StartExecution``.
        """
        if self.group != "limits":
            return self.dimension, resource
        name, _, value = resource.partition("=")
        return name, value

    @property
    def label(self) -> str:
        """Return the name in plain words: ``Executions failed``."""
        words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", self.name)
        return words[0] + words[1:].lower()

    @property
    def usual(self) -> str:
        """Return the default statistic of its chart: ``Sum`` for counts, else ``Average``."""
        return "Sum" if self.unit == "Count" and self.group != "gauges" else "Average"


ENDS = {
    "SUCCEEDED": "ExecutionsSucceeded",
    "FAILED": "ExecutionsFailed",
    "TIMED_OUT": "ExecutionsTimedOut",
    "ABORTED": "ExecutionsAborted",
}
"""Final status of an execution -> metric that counts it."""
REDRIVEN_ENDS = {status: f"Redriven{name}" for status, name in ENDS.items()}
"""Final status -> metric that counts redriven executions ending with it."""
STATUS_OF = {name: status for ends in (ENDS, REDRIVEN_ENDS) for status, name in ends.items()}
"""Name of a metric -> the final status that it counts."""
LIMITS = ("ServiceMetric", "APIName")
"""Dimensions of ``ThrottledEvents``: transitions have the first one, API calls the second."""
_EXECUTIONS = {
    "ExecutionTime": (
        "Milliseconds",
        "finished executions, from start or last redrive to end",
    ),
    "ExecutionThrottled": ("Count", "states and retries delayed by the transition limit"),
    "ExecutionsAborted": ("Count", "stopped executions"),
    "ExecutionsFailed": ("Count", "failed executions"),
    "ExecutionsStarted": (
        "Count",
        "started executions (a sample of 1 at the start and of 0 at the end)",
    ),
    "ExecutionsSucceeded": ("Count", "succeeded executions"),
    "ExecutionsTimedOut": ("Count", "timed-out executions"),
    "ExecutionsRedriven": ("Count", "redriven executions"),
    "RedrivenExecutionsAborted": ("Count", "redriven executions, stopped"),
    "RedrivenExecutionsFailed": ("Count", "redriven executions, failed again"),
    "RedrivenExecutionsSucceeded": ("Count", "redriven executions, succeeded"),
    "RedrivenExecutionsTimedOut": ("Count", "redriven executions, timed out"),
    "ExpressExecutionBilledDuration": ("Milliseconds", "Express duration, rounded up to 100 ms"),
    "ExpressExecutionBilledMemory": ("Bytes", "Express memory, rounded up to 64 MB, estimated"),
    "ExpressExecutionMemory": ("Bytes", "Express memory, estimated"),
}
SEVEN = tuple(_EXECUTIONS)[:7]
"""The metrics on the first page of charts."""
_GAUGES = {
    "OpenExecutionCount": "running executions",
    "OpenExecutionLimit": "maximum of running executions",
    "ApproximateOpenMapRunCount": "running Map Runs",
    "OpenMapRunLimit": "maximum of running Map Runs",
    "ApproximateMapRunBacklogSize": "child executions waiting to start",
}
_TIMES = {
    "RunTime": "from start to end",
    "ScheduleTime": "from scheduling to start",
    "Time": "from scheduling to end",
}
_COUNTS = {
    "Scheduled": "scheduled",
    "Started": "started",
    "Succeeded": "succeeded",
    "Failed": "failed",
    "TimedOut": "timed out",
}


@dataclass(frozen=True, slots=True)
class TaskMetricNames:
    """The parts of metric names for one kind of task.

    Time metrics begin with ``singular`` (``ActivityTime``), counts with ``plural``
    (``ActivitiesFailed``). ``words`` names the kind in the description of a metric.
    """

    singular: str
    plural: str
    dimension: str
    words: str


WORK = {
    "activity": TaskMetricNames("Activity", "Activities", "ActivityArn", "activities"),
    "lambda": TaskMetricNames(
        "LambdaFunction", "LambdaFunctions", "LambdaFunctionArn", "Lambda functions"
    ),
    "service": TaskMetricNames(
        "ServiceIntegration",
        "ServiceIntegrations",
        "ServiceIntegrationResourceArn",
        "service integrations",
    ),
}


def _all_metrics() -> list[Metric]:
    machine = "StateMachineArn"
    metrics = [
        Metric(name, unit, machine, "executions", meaning)
        for name, (unit, meaning) in _EXECUTIONS.items()
    ]
    words = (
        "executions that reached 80 % of a limit of payload, history, time or transitions a second,"
        " once for each"
    )
    metrics.append(Metric("ExecutionsNearLimit", "Count", machine, "near", words))
    words = "calls refused and transitions delayed by a limit"
    metrics.append(Metric("ThrottledEvents", "Count", LIMITS[0], "limits", words))
    metrics += [Metric(name, "Count", "", "gauges", meaning) for name, meaning in _GAUGES.items()]
    for kind in WORK.values():
        metrics += [
            Metric(
                kind.singular + name,
                "Milliseconds",
                kind.dimension,
                "tasks",
                f"{kind.words}: {words}",
            )
            for name, words in _TIMES.items()
        ]
        metrics += [
            Metric(kind.plural + name, "Count", kind.dimension, "tasks", f"{kind.words} {words}")
            for name, words in _COUNTS.items()
        ]
    words = "activities without a heartbeat in time"
    late = Metric("ActivitiesHeartbeatTimedOut", "Count", "ActivityArn", "tasks", words)
    return [*metrics, late]


METRICS = {metric.name: metric for metric in _all_metrics()}


STATE_METRICS = {
    name: Metric(name, unit, "StateMachineArn", "tasks", meaning)
    for name, unit, meaning in (
        ("TaskAttemptTime", "Milliseconds", "attempts of a Task, from scheduling to end"),
        ("TaskAttemptsSucceeded", "Count", "succeeded attempts of a Task"),
        ("TaskAttemptsFailed", "Count", "failed attempts of a Task"),
        ("TaskAttemptsTimedOut", "Count", "timed-out attempts of a Task"),
    )
}
"""Metrics of a single state, with the label ``state`` in ``/metrics``. AWS has no such metrics."""
