"""Run many lives of executions, in any order of events, and report in one line of JSON.

``python -m tests.simulation [--examples 20000] [--steps 100] [--seed 1]``: the same seed tries the
same lives; of one that fails the shortest form is printed.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
import traceback
from typing import TYPE_CHECKING, Any

import hypothesis
from hypothesis import HealthCheck, Phase

if TYPE_CHECKING:
    from collections.abc import Callable


def main() -> int:
    """Run the simulation in a database in memory."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation")
    parser.add_argument("--examples", type=int, default=20_000)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--no-shrink", action="store_true", help="tell a failure as it came")
    options = parser.parse_args()
    phases = [Phase.generate] if options.no_shrink else [Phase.generate, Phase.shrink]
    how = hypothesis.settings(
        max_examples=options.examples,
        stateful_step_count=options.steps,
        phases=phases,
        database=None,
        deadline=None,
        print_blob=False,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
    begun = time.monotonic()
    report, violations = _run(how, options.seed)
    report |= {"steps": options.steps, "seconds": round(time.monotonic() - begun, 1)}
    print(json.dumps({"check": "simulation", "seed": options.seed, **report}))
    return 1 if violations else 0


def _run(how: hypothesis.settings, seed: int) -> tuple[dict[str, float], int]:
    _database()
    import pytest
    from hypothesis.stateful import run_state_machine_as_test

    from console.models import Project
    from console.store.tasks import activities
    from tests.console.store.helpers import REGION
    from tests.simulation.machine import Simulation
    from tests.simulation.world import prepare

    violations = 0
    with pytest.MonkeyPatch.context() as patch:
        project = Project.objects.create(name="simulation", account_id="123456789012")
        activities.create_activity(project, REGION, "work")
        Simulation.machines = prepare(project, patch)
        try:
            run_state_machine_as_test(hypothesis.seed(seed)(Simulation), settings=how)
        except Exception:  # noqa: BLE001 - whatever it is, it is what was looked for
            traceback.print_exc(file=sys.stderr)
            violations = 1
    counted: dict[str, float] = {
        "n": Simulation.examples,
        "violations": violations,
        "fenced": Simulation.fenced,
        "released": Simulation.released,
        "paused": Simulation.paused,
        "resumed": Simulation.resumed,
        "struck": Simulation.struck,
        "placed": Simulation.placed,
    }
    return counted, violations


def _database() -> None:
    """Make an empty database in memory."""
    os.environ["STATEYARD_DATA"] = tempfile.mkdtemp(prefix="stateyard-simulation-")
    os.environ.pop("STATEYARD_DATABASE_URL", None)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.config.settings")
    import django
    from django.conf import settings

    settings.DATABASES["default"]["NAME"] = ":memory:"
    django.setup()
    from django.core.management import call_command
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("PRAGMA temp_store=MEMORY")
    # what is written while the database is made goes through this thread, too
    from console.db import writer

    def put(fn: Callable[[], Any]) -> Callable[[], Any]:
        result = writer._write_here(fn)
        return lambda: result

    writer._writer.put = put  # type: ignore[method-assign]
    call_command("migrate", verbosity=0)


if __name__ == "__main__":
    sys.exit(main())
