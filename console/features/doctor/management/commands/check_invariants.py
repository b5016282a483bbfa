"""``manage.py check_invariants``: find lost, duplicate, stuck or misordered rows of executions."""

from __future__ import annotations

import itertools
import json
import sys
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from console.features.doctor.clients import Log
from console.features.doctor.invariants import Checked, Violation, check
from console.features.doctor.watch import Watch
from console.management.base import DataFolderCommand, WrongUse
from console.models import Execution

if TYPE_CHECKING:
    from argparse import ArgumentParser
    from collections.abc import Iterable, Iterator

    from django.db.models import QuerySet

_TOLD = 100  # violations that a report in JSON carries; their number is that of all


class Command(DataFolderCommand):
    """Prints every violation; exits with 1 if there is one."""

    help = "Check that executions in the database fulfil the invariants; reads the database only."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the executions to check, the output format, and the clients' records."""
        parser.add_argument("--json", action="store_true", help="one JSON object, on one line")
        parser.add_argument(
            "--sample",
            type=float,
            metavar="SECONDS",
            help="first watch running executions for this time, read once a second, for executions"
            " that nothing moves on, versions that go back, and events that change",
        )
        parser.add_argument("--since", metavar="TIME", help="only executions started since (ISO)")
        parser.add_argument("--last", type=int, metavar="N", help="only the N newest executions")
        parser.add_argument(
            "--client-log",
            action="append",
            default=[],
            metavar="FILE",
            help="JSON lines of what a client saw: docs/reference/invariants.md",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Check, and print the violations; exit with 1 if there are any."""
        del args
        checked, watch = Checked(), Watch()
        violations = itertools.chain(
            watch.run(options["sample"] or 0),
            check(_wanted(options["since"], options["last"]), checked),
            _logs(options["client_log"]),
        )
        first: list[Violation] = []
        number = 0
        for number, violation in enumerate(violations, 1):
            if not options["json"]:
                self.stdout.write(str(violation))
            elif number <= _TOLD:
                first.append(violation)
        report = {"check": "check_invariants", "n": checked.n, "violations": number}
        if options["json"]:
            more = {"samples": watch.samples, "found": [asdict(violation) for violation in first]}
            self.stdout.write(json.dumps(report | more))
        elif not number:
            self.stdout.write(f"{checked.n} executions, nothing wrong")
        if number:
            sys.exit(1)


def _wanted(since: str | None, last: int | None) -> QuerySet[Execution] | None:
    if since is None and last is None:
        return None
    rows = Execution.objects.all()
    if since is not None:
        rows = rows.filter(start_ms__gte=_epoch_ms(since))
    if last is not None:
        oldest = rows.order_by("-pk").values_list("pk", flat=True)[max(last - 1, 0) :].first()
        rows = rows if oldest is None else rows.filter(pk__gte=oldest)
    return rows


def _epoch_ms(text: str) -> int:
    try:
        return int(datetime.fromisoformat(text).timestamp() * 1000)
    except ValueError:
        raise WrongUse(f"--since: got {text}, wanted a time like 2026-11-20T08:00") from None


def _logs(names: Iterable[str]) -> Iterator[Violation]:
    log = Log()
    for name in names:
        try:
            with Path(name).open(encoding="utf-8") as lines:
                yield from log.check(lines)
        except OSError as error:
            raise WrongUse(f"{name}: {error}") from None
    yield from log.end()
