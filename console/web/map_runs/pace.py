"""Say how a Map Run keeps to its limits, and how fast its children end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from console.db import clock
from console.web.core import formatting

if TYPE_CHECKING:
    from console.models import MapRun
    from console.store.map_runs.map_counts import Counts

_SURE = 10
"""How many children must have ended before the time that is left is estimated."""
_STUCK = 2
"""Where a child runs so many times longer than usual, nobody knows how long the others take."""
_UNITS = ((formatting.SECOND, "second"), (formatting.MINUTE, "minute"), (formatting.HOUR, "hour"))


@dataclass(frozen=True, slots=True)
class PaceFact:
    """One fact. ``value``: the figure; ``rest``: following words; ``bad``: beyond a limit."""

    word: str
    value: str
    rest: str = ""
    bad: bool = False


def pace_facts(
    run: MapRun, children: Counts, *, over: bool, oldest_ms: int | None = None
) -> list[PaceFact]:
    """Return concurrency, tolerated failures and throughput, in words.

    ``oldest_ms``: when the child that has been running longest began, None if that is not known.
    """
    facts = [_concurrency(run, children, over=over), _tolerated(run, children)]
    if not run.redrive_count:  # the time between the attempts is none of a Map Run's
        facts.append(_throughput(run, children, over=over, oldest_ms=oldest_ms))
    return facts


def _concurrency(run: MapRun, children: Counts, *, over: bool) -> PaceFact:
    limit = f"at most {run.max_concurrency:,}" if run.max_concurrency else "no limit"
    if over:
        return PaceFact("Concurrency", limit)
    return PaceFact("Concurrency", f"{children.running:,} running", f"of {limit}")


def _tolerated(run: MapRun, children: Counts) -> PaceFact:
    """Say how many failures there are and may be; AWS counts what was aborted, too.

    The two stand apart: once the limit is passed, the Map Run aborts the children that run.
    """
    failed = children.failed + children.timed_out
    bad = failed + children.aborted
    count, percentage = run.tolerated_count, run.tolerated_percentage
    word = "Tolerated failures"
    if count is None and percentage is None:
        return PaceFact(word, "none", "the first one ends the Map Run", bad=bad > 0)
    if percentage is not None and run.reading:  # of a total that is not known
        return PaceFact(word, f"{percentage:g} %", "of the items, which are being read")
    limits, words = [], []
    if count is not None:
        limits.append(count)
        words.append(f"{count:,}")
    if percentage is not None:
        limits.append(int(percentage * run.total / 100))
        words.append(f"{percentage:g} %")
    most = min(limits)
    limit = f"{most:,} tolerated" + (f" ({' or '.join(words)})" if percentage is not None else "")
    kinds = "failed or timed out" if children.timed_out else "failed"
    aborted = f", {children.aborted:,} aborted" if children.aborted else ""
    return PaceFact(word, f"{failed:,}", f"{kinds}{aborted}; {limit}", bad=bad > most)


def _throughput(run: MapRun, children: Counts, *, over: bool, oldest_ms: int | None) -> PaceFact:
    now = run.stop_ms or clock.now_ms()
    took_ms = max(now - run.start_ms, 1)
    if not children.ended:
        return PaceFact("Throughput", "none yet" if not over else "none")
    unit_ms, name = next(
        (unit for unit in _UNITS if children.ended * unit[0] >= took_ms), _UNITS[-1]
    )
    rate = children.ended * unit_ms / took_ms
    shown = f"{rate:,.0f}" if rate >= _SURE else f"{rate:.1f}"
    left = children.pending + children.running
    rest = f"child execution{'' if shown == '1.0' else 's'} a {name}"
    usual_ms = took_ms * max(children.running, 1) // children.ended  # by Little's law
    stuck = oldest_ms is not None and now - oldest_ms > _STUCK * usual_ms
    sure = children.ended >= _SURE and not stuck
    if children.pending and not over and not run.reading and sure:
        left_ms = left * took_ms // children.ended
        rest += f", about {formatting.rough_duration(left_ms)} left"
    return PaceFact("Throughput", shown, rest)
