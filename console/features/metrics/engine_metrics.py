"""Prometheus metrics of the server itself: facts from the database, and of this process.

Every process reports the same facts of the database. Its own numbers start with the process and are
reported by it alone: scrape each process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import connection
from prometheus_client.core import Metric as Family
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from console.config.version import server_version
from console.db import clock, instruments
from console.feature import Hook, hooked
from console.store.state import health

if TYPE_CHECKING:
    from collections.abc import Iterator

    from console.store.state.health import Health

_PROCESS = ProcessCollector(registry=None)
_POOL = {
    "requests_num": ("pool_requests", "requests for a connection"),
    "requests_queued": ("pool_waits", "requests for a connection that waited for one"),
    "requests_errors": ("pool_errors", "requests for a connection that got none in time"),
    "connections_errors": ("pool_connection_errors", "connections that could not be opened"),
}
"""Statistics of psycopg's pool -> name and meaning of its counter."""


class OwnCollector(Collector):
    """Reports this process's numbers, without the database."""

    def collect(self) -> Iterator[Family]:
        """Yield the metric families of this process."""
        yield from process_families()


def process_families() -> Iterator[Family]:
    """Yield version, instruments, connection pool, and the operating system's figures."""
    build = Family("stateyard_build", "the version of this process", "info")
    version = server_version().removeprefix("stateyard ")
    build.add_sample("stateyard_build_info", {"version": version}, 1)
    yield build
    for instrument in instruments.INSTRUMENTS:
        if isinstance(instrument, instruments.LabelledCounter):
            yield _counter(instrument)
        else:
            yield _histogram(instrument)
    yield from _pool_families()
    yield from _PROCESS.collect()


def server_families(state: Health) -> Iterator[Family]:
    """Yield facts of the database; only the readiness while it does not answer.

    ``state``: the health of the server (``health.Health``).
    """
    yield _gauge("stateyard_ready", "1 if the server is ready, as /readyz says", float(state.ready))
    yield _gauge(
        "stateyard_data_disk_free_bytes", "free space in the data folder", state.disk_free_bytes
    )
    if not state.answered:
        return
    workers = 1 if state.workers is None else state.workers
    yield _gauge("stateyard_workers_alive", "workers with a lease", workers)
    yield _gauge(
        "stateyard_expired_leases", "workers that are gone, before a takeover", state.expired_leases
    )
    yield _gauge(
        "stateyard_oldest_runnable_seconds",
        "for how long the oldest message or timer has waited for a step",
        state.oldest_runnable_ms / 1000,
    )
    yield _gauge(
        "stateyard_clock_offset_seconds",
        "the database's clock minus the clock of this machine",
        state.clock_offset_ms / 1000,
    )
    now_ms = clock.now_ms()
    for gauges in hooked(Hook.SERVER_GAUGES):
        for name, meaning, value in gauges():
            yield _gauge(name, meaning, value)
    yield from _work_families(now_ms)
    timers, late = health.count_timers(now_ms)
    yield _gauge("stateyard_timers_open", "timers that are set, up to 100,000", timers)
    yield _gauge("stateyard_timers_late", "timers that are due for more than a second", late)


def _work_families(now_ms: int) -> Iterator[Family]:
    """Yield the amount of each kind of waiting work, and the age of the oldest."""
    depth = Family("stateyard_queue_depth", "due work by kind, up to 1,001", "gauge")
    age = Family("stateyard_queue_age_seconds", "age of the oldest due work", "gauge", "seconds")
    for work in health.list_waiting_work(now_ms):
        labels = {"kind": work.kind.lower()}
        depth.add_sample(depth.name, labels, work.count)
        age.add_sample(age.name, labels, work.age_ms / 1000)
    yield depth
    yield age


def _pool_families() -> Iterator[Family]:
    """Yield the statistics of the PostgreSQL connection pool; SQLite has none."""
    pool = getattr(connection, "pool", None) if connection.vendor == "postgresql" else None
    if pool is None:
        return
    figures = pool.get_stats()
    meaning = "connections to PostgreSQL of this process"
    yield _gauge("stateyard_pool_connections", meaning, figures["pool_size"])
    meaning = "connections of the pool that nobody uses"
    yield _gauge("stateyard_pool_available", meaning, figures["pool_available"])
    meaning = "most connections that the pool may open"
    yield _gauge("stateyard_pool_connections_max", meaning, figures["pool_max"])
    for key, (name, meaning) in _POOL.items():
        family = Family(f"stateyard_{name}", meaning, "counter")
        family.add_sample(f"{family.name}_total", {}, figures.get(key, 0))
        yield family
    meaning = "seconds that requests for a connection have waited"
    family = Family("stateyard_pool_wait_seconds", meaning, "counter", "seconds")
    family.add_sample(f"{family.name}_total", {}, figures.get("requests_wait_ms", 0) / 1000)
    yield family


def _gauge(name: str, meaning: str, value: float) -> Family:
    unit = next((unit for unit in ("seconds", "bytes") if name.endswith(f"_{unit}")), "")
    family = Family(name, meaning, "gauge", unit)
    family.add_sample(name, {}, value)
    return family


def _counter(counts: instruments.LabelledCounter) -> Family:
    unit = "seconds" if counts.name.endswith("_seconds") else ""
    family = Family(counts.name, counts.meaning, "counter", unit)
    for values, number in sorted(counts.read().items()):
        labels = dict(zip(counts.labels, values, strict=True))
        family.add_sample(f"{family.name}_total", labels, number)
    return family


def _histogram(durations: instruments.DurationHistogram) -> Family:
    family = Family(durations.name, durations.meaning, "histogram", "seconds")
    for values, spread in sorted(durations.read().items()):
        labels = dict(zip(durations.labels, values, strict=True))
        for bound, count in spread.buckets:
            family.add_sample(f"{family.name}_bucket", {**labels, "le": str(bound)}, count)
        family.add_sample(f"{family.name}_bucket", {**labels, "le": "+Inf"}, spread.count)
        family.add_sample(f"{family.name}_count", labels, spread.count)
        family.add_sample(f"{family.name}_sum", labels, spread.sum_s)
    return family
