"""``manage.py prune``: delete executions that ended long ago, with all their rows."""

from __future__ import annotations

import contextlib
import re
import signal
from typing import TYPE_CHECKING, Any

from django.core.management.base import CommandError

from console.db import clock
from console.db.audit import Actor
from console.feature import Hook, hooked
from console.management.base import DataFolderCommand, WrongUse
from console.models import Project
from console.store.executions import retention

if TYPE_CHECKING:
    from argparse import ArgumentParser
    from collections.abc import Iterator

_UNITS_S = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
_INTERRUPTED = 130  # what a shell reports of a command that Ctrl-C ended


class Command(DataFolderCommand):
    """Shows its progress, and stops at the end of a transaction after Ctrl-C."""

    help = "Remove executions that ended long ago, with their history."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the age and the filters."""
        parser.add_argument("--older-than", required=True, metavar="90d", help="d, h, m or s")
        parser.add_argument("--machine", default="", help="only those of this state machine")
        parser.add_argument("--project", default="", help="only those of this project")
        parser.add_argument(
            "--batch", type=int, default=retention.BATCH, help="executions in one transaction"
        )
        parser.add_argument("--dry-run", action="store_true", help="only count them")

    def handle(self, *args: Any, **options: Any) -> None:
        """Delete the executions and print their number."""
        del args
        if options["batch"] < 1:
            raise WrongUse(f"--batch: got {options['batch']}, wanted 1 or more")
        scope = _scope(options)
        with _ctrl_c() as pressed:
            pruned = retention.prune(
                scope,
                batch=options["batch"],
                dry_run=options["dry_run"],
                actor=Actor("manage.py"),
                go_on=lambda so_far: self._show(so_far) and not pressed,
            )
        self.stdout.write(_said(scope, pruned, dry_run=options["dry_run"]))
        if pressed:
            raise CommandError("stopped by Ctrl-C; the rest is there", returncode=_INTERRUPTED)

    def _show(self, so_far: retention.Pruned) -> bool:
        if self.stderr.isatty():
            self.stderr.write(f"\r{so_far}", ending="")
            self.stderr.flush()
        return True


def _said(scope: retention.RetentionScope, pruned: retention.Pruned, *, dry_run: bool) -> str:
    verb = "would be removed" if dry_run else "removed"
    message = f"{verb}, {scope}: {pruned}"
    return f"{message}; {pruned.needed} stay, they are still needed" if pruned.needed else message


def _scope(options: dict[str, Any]) -> retention.RetentionScope:
    project = options["project"]
    names = list(Project.objects.values_list("name", flat=True))
    if project and project not in names:
        raise WrongUse(f"--project: got {project!r}, wanted one of: {', '.join(names)}")
    if not options["dry_run"]:
        for prepare in hooked(Hook.BEFORE_PRUNING):
            prepare()
    before_ms = clock.now_ms() - _age_ms(options["older_than"])
    if not options["dry_run"]:
        needed_ms = [needed_since() for needed_since in hooked(Hook.NEEDED_SINCE)]
        before_ms = min([before_ms, *needed_ms])
    return retention.RetentionScope(before_ms, project, options["machine"])


def _age_ms(text: str) -> int:
    match = re.fullmatch(r"(\d{1,9})([dhms])", text)
    if match is None:
        raise WrongUse(f"--older-than: got {text!r}, wanted a number with d, h, m or s: 90d")
    return int(match[1]) * _UNITS_S[match[2]] * 1000


@contextlib.contextmanager
def _ctrl_c() -> Iterator[list[int]]:
    """Record the first Ctrl-C instead of raising; the second one raises KeyboardInterrupt."""
    pressed: list[int] = []
    before = signal.getsignal(signal.SIGINT)

    def press(number: int, _: object) -> None:
        pressed.append(number)
        signal.signal(signal.SIGINT, before)

    try:
        signal.signal(signal.SIGINT, press)
    except ValueError:  # not the main thread, which gets no Ctrl-C
        yield pressed
        return
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, before)
