"""Write the report of a load run, as text or JSON, and name the limit that came first."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from console.features.load.measuring import THROTTLES, percentiles

if TYPE_CHECKING:
    from collections.abc import Iterator

    from console.config.aws_rates import AwsRate
    from console.features.load.measuring import LoadPlan, Measurements

_WORDS = {
    "start-rate": "starts were throttled",
    "state-transitions": "state transitions were delayed by their rate",
    "client": "this client could not send in time",
    "ExecutionLimitExceeded": "the quota of open executions was reached",
    "ServiceUnavailable": "the server refused starts because it was busy",
    "States.DataLimitExceeded": "a payload was too large",
    "States.Timeout": "an execution or a Task took too long",
    "TIMED_OUT": "an execution took too long",
}
"""Kind of a limit -> its effect, for the report. Other errors are not limits."""
_THROTTLED = ("Throttl", "TooManyRequests", "Rate exceeded", "LimitExceeded")


def report_of(
    plan: LoadPlan, measured: Measurements, *, delayed: int | None, aws: list[dict[str, Any]]
) -> dict[str, Any]:
    """Return the report as a JSON object. Latencies in milliseconds.

    ``delayed``: the number of state transitions that the rate limit has delayed, None if not known;
    ``aws``: of ``aws_limits``.
    """
    accepted = len(measured.calls) + (len(measured.ends) if plan.sync else 0)
    first = _first_limit(measured)
    return {
        "machine": plan.machine_arn,
        "run": plan.name,
        "rate": plan.rate,
        "planned": plan.total,
        "sent": measured.sent,
        "accepted": accepted,
        "seconds": round(measured.took_s, 1),
        "interrupted": measured.interrupted,
        "latency": {
            "start": percentiles(measured.calls),
            "end": percentiles(measured.ends),
        },
        "executions": {**measured.statuses, "RUNNING": measured.running},
        "throttled": measured.throttled,
        "delayedTransitions": delayed,
        "refused": dict(measured.refusals.most_common()),
        "failed": dict(measured.failures.most_common()),
        "late": measured.late,
        "endsUnknown": _ends_unknown(plan, measured),
        "firstLimit": first,
        "aws": aws,
    }


def _ends_unknown(plan: LoadPlan, measured: Measurements) -> str:
    """Return why the ends are not known, "" if they are."""
    if plan.express and not plan.sync:
        return "Express executions are not listed; --sync measures their ends"
    return measured.look_error and f"ListExecutions: {measured.look_error}"


def _first_limit(measured: Measurements) -> dict[str, Any] | None:
    """Return the first limit that the run has met, None without any."""
    limits = {
        kind: moment
        for kind, moment in measured.first.items()
        if kind in _WORDS or kind in measured.refusals or any(word in kind for word in _THROTTLED)
    }
    if not limits:
        return None
    kind, (at_s, number) = min(limits.items(), key=lambda item: item[1])
    return {
        "kind": kind,
        "seconds": round(at_s, 1),
        "start": number,
        "words": _WORDS.get(kind, f"{kind} occurred"),
    }


def aws_limits(
    plan: LoadPlan, starts: AwsRate, transitions: AwsRate, per_execution: int | None
) -> list[dict[str, Any]]:
    """Return the rates of AWS that this load comes near, by default quotas of its region.

    ``per_execution``: state transitions of one execution, None if not known or not limited.
    """
    wants = [("StartExecution", plan.rate, starts)]
    if per_execution is not None:
        wants.append(("StateTransition", plan.rate * per_execution, transitions))
    return [
        {
            "limit": name,
            "rate": rate,
            "bucket": bucket.bucket,
            "refill": bucket.refill,
            "emptyAfterSeconds": after if after <= plan.seconds else None,
        }
        for name, rate, bucket in wants
        if rate >= bucket.refill * 0.8
        for after in [_empty_after(rate, bucket)]
    ]


def _empty_after(rate: float, bucket: AwsRate) -> float:
    """Return after how many seconds a full bucket is empty."""
    if rate <= bucket.refill:
        return float("inf")
    return round(bucket.bucket / (rate - bucket.refill), 1)


def write_json(report: dict[str, Any]) -> str:
    """Return the report as indented JSON."""
    return json.dumps(report, indent=2)


def write_text(report: dict[str, Any]) -> str:
    """Return the report as lines."""
    return "\n".join(_lines(report))


def _lines(report: dict[str, Any]) -> Iterator[str]:
    sent = f"{report['sent']:,} of {report['planned']:,} starts at {report['rate']:g} a second"
    yield f"{sent}, {report['seconds']:g} s in all{', interrupted' * report['interrupted']}"
    counts = [f"{count:,} {status}" for status, count in report["executions"].items() if count]
    yield f"  accepted    {report['accepted']:,}{': ' if counts else ''}{', '.join(counts)}"
    for name, words in (("start", "start call"), ("end", "end")):
        if values := report["latency"][name]:
            shown = ", ".join(f"{key} {value:,.1f} ms" for key, value in values.items())
            yield f"  {words:<11} {shown}"
    if report["endsUnknown"]:
        yield f"  end         not known: {report['endsUnknown']}"
    yield f"  throttled   {report['throttled']:,} starts{_delayed_words(report)}"
    others = {code: count for code, count in report["refused"].items() if code not in THROTTLES}
    for title, errors in (("refused", others), ("failed", report["failed"])):
        if errors:
            shown = ", ".join(f"{count:,} {error}" for error, count in errors.items())
            yield f"  {title:<11} {shown}"
    if report["late"]:
        yield f"  late        {report['late']:,} starts were sent too late by this client"
    first = report["firstLimit"]
    if first is None:
        yield "  first limit none"
    else:
        place = f"after {first['seconds']:g} s, start {first['start']:,}"
        yield f"  first limit {first['words']}, {place}"
    for limit in report["aws"]:
        yield f"  on AWS      {_aws_words(limit)}"


def _delayed_words(report: dict[str, Any]) -> str:
    delayed = report["delayedTransitions"]
    return "" if delayed is None else f", {delayed:,} state transitions delayed"


def _aws_words(limit: dict[str, Any]) -> str:
    bucket = f"a bucket of {limit['bucket']:,} that refills {limit['refill']:,} a second"
    words = f"{limit['limit']} at {limit['rate']:,g} a second, of {bucket}"
    if limit["emptyAfterSeconds"] is not None:
        words += f": empty after {limit['emptyAfterSeconds']:g} s"
    return words


WRITERS = {"text": write_text, "json": write_json}
"""Format -> function."""
