"""Measure the server time of the first view of a history: 25,000 events beside 25.

``python -m tests.benchmarks.first_view [--rounds 7] [--shapes loop,running,map] [--postgres]`` runs
real machines to both lengths, in a database of its own. Each round looks at executions that this
process never saw: nothing of them is in its memory, while imports, templates and the drawing of the
definition are, as in a server that has shown others before.
Figures are medians of processor time, in milliseconds.
"""

from __future__ import annotations

import argparse
import atexit
import gc
import json
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from django.test import Client

    from console.models import Execution

SHORT, LONG = 25, 25_000
ROLE = "arn:aws:iam::123456789012:role/bench"
VIEWS = {
    "page": "",
    "graph": "?view=graph",
    "steps": "?view=steps",
    "timeline": "?view=timeline",
    "newest events": "?order=newest",
    "a step": "?step={step}",
    "half way back": "?at={middle}",
}


def loop(last: dict[str, Any]) -> dict[str, Any]:
    """Return a machine that counts in a loop: four events a turn."""
    again = {"Variable": "$.n", "NumericLessThanPath": "$.turns", "Next": "Count"}
    more = {"n.$": "States.MathAdd($.n, 1)", "turns.$": "$.turns"}
    return {
        "StartAt": "Count",
        "States": {
            "Count": {"Type": "Pass", "Parameters": more, "Next": "More"},
            "More": {"Type": "Choice", "Choices": [again], "Default": "Last"},
            "Last": last,
        },
    }


def each() -> dict[str, Any]:
    """Return a machine with a Map: four events an item."""
    inner = {"StartAt": "One", "States": {"One": {"Type": "Pass", "End": True}}}
    state = {"Type": "Map", "ItemsPath": "$.items", "ItemProcessor": inner, "End": True}
    return {"StartAt": "Each", "States": {"Each": state}}


SHAPES = {
    "loop": (loop({"Type": "Succeed"}), "Count"),
    "running": (loop({"Type": "Wait", "Seconds": 3600, "End": True}), "Count"),
    "map": (each(), "One"),
    "slow": (loop({"Type": "Succeed"}), "Count"),
}
_STEP_MS = 200  # between two events of a slow one: 25,000 take more than an hour


def run(machine: Any, events: int, name: str) -> Execution:
    """Let the engine make an execution of about so many events, to its end or its Wait."""
    from console.models import Execution
    from console.store.executions import step
    from console.store.executions.start import start_execution

    turns = (events - 4) // 4
    data = {"n": 0, "turns": turns, "items": [0] * turns if "each" in machine.name else []}
    execution = start_execution(machine, name=name, input=json.dumps(data))
    while step.step_execution(execution.pk):
        pass
    if machine.name == "slow":
        _stretch(execution)
    return Execution.objects.get(pk=execution.pk)


def _stretch(execution: Execution) -> None:
    """Let an execution have taken its time."""
    from django.db.models import F

    from console.models import Execution, HistoryEvent

    rows = HistoryEvent.objects.filter(execution_id=execution.pk)
    rows.update(at_ms=execution.start_ms + (F("event_id") - 1) * _STEP_MS)
    end = execution.start_ms + rows.count() * _STEP_MS
    Execution.objects.filter(pk=execution.pk).update(stop_ms=end)


def spent(client: Client, address: str) -> float:
    """Return what one page costs, in milliseconds of processor time."""
    gc.collect()
    begun = time.process_time()
    answer = client.get(address)
    taken = (time.process_time() - begun) * 1000
    assert answer.status_code == 200, answer.content[:500]
    return taken


def forget() -> None:
    """Drop whatever this process keeps of executions."""
    from console.web.history import traces

    traces._TRACES._known.clear()
    traces._past.clear()


def looks(client: Client, address: str, execution: Execution) -> dict[str, float]:
    """Return what the first and the second look at an execution cost."""
    forget()
    return {"first": spent(client, address), "again": spent(client, address)}


def measure(shape: str, rounds: int, client: Client, project: Any) -> dict[str, dict[str, float]]:
    """Return view -> figures of one shape."""
    from console.store.machines import machines

    definition, step = SHAPES[shape]
    name = f"{shape}-each" if shape == "map" else shape
    text = json.dumps(definition)
    machine = machines.create_machine(
        project, "us-east-1", name=name, definition=text, role_arn=ROLE
    )
    samples: dict[str, dict[str, list[float]]] = {view: {} for view in VIEWS}
    for number in range(-1, rounds):  # the first round only warms up
        for size in (SHORT, LONG):
            execution = run(machine, size, f"x{number}-{size}")
            for view, query in VIEWS.items():
                at = query.format(step=step, middle=size // 2)
                address = f"/machines/{name}/executions/{execution.name}/{at}"
                for kind, taken in looks(client, address, execution).items():
                    if number >= 0:
                        samples[view].setdefault(f"{kind} {size:,}", []).append(taken)
    return {
        view: {kind: statistics.median(times) for kind, times in kinds.items()}
        for view, kinds in samples.items()
    }


def prepare() -> tuple[Client, Any]:
    """Return somebody who is signed in to an empty server, and the project."""
    from django.contrib.auth import get_user_model
    from django.core.management import call_command
    from django.test import Client

    from console.models import Membership, Project

    call_command("migrate", verbosity=0)
    project = Project.objects.create(name="default", account_id="123456789012")
    user = get_user_model().objects.create_user("bench")
    Membership.objects.create(project=project, user=user, role="editor")
    client = Client(SERVER_NAME="localhost")
    client.force_login(user)
    return client, project


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--shapes", default=",".join(SHAPES))
    parser.add_argument("--postgres", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["STATEYARD_DATA"] = folder
        os.environ["DJANGO_SETTINGS_MODULE"] = "console.config.settings"
        if options.postgres:
            from tests.postgres import Postgres

            server = Postgres(Path(folder) / "postgres")
            atexit.register(server.stop)
            os.environ["STATEYARD_DATABASE_URL"] = server.url
        import django

        django.setup()
        client, project = prepare()
        for shape in options.shapes.split(","):
            tell(shape, measure(shape, options.rounds, client, project))
        django.db.connection.close()


def tell(shape: str, views: dict[str, dict[str, float]]) -> None:
    """Print one shape's figures and ratios."""
    looks = ("first", "again")
    print(f"{shape:<16}" + "".join(f"{look:>28}" for look in looks))
    for view, times in views.items():
        figures = [(times[f"{look} {SHORT:,}"], times[f"{look} {LONG:,}"]) for look in looks]
        told = (f"{short:.1f} -> {long:.1f} = {long / short:.1f}x" for short, long in figures)
        print(f"  {view:<14}" + "".join(f"{text:>28}" for text in told))


if __name__ == "__main__":
    main()
