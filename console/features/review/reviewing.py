"""Make the review of two commits, and write its files, for the command ``review``."""

from __future__ import annotations

import errno
import itertools
import re
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from console.cli.connection import ConnectionRefused
from console.cli.documents import SourceError
from console.features.review.commits import Repository
from console.features.review.comparison import ReviewKind, compare_machines, compare_triggers
from console.features.review.markdown import Review, write_markdown
from console.features.review.pictures import Layouts, review_pictures
from console.features.review.replays import replay_machine
from console.features.review.sides import look_for_unread, read_side

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from console.cli.connection import Connection
    from console.features.review.comparison import MachineReview
    from console.features.review.replays import ReplayedMachine

REPORT = "review.md"


def review_commits(
    folder: Path, commits: str, paths: Sequence[Path], values: Mapping[str, str]
) -> Review:
    """Return the review of ``BASE..HEAD``, without pictures and replays.

    ``paths``: relative to the folder; ``values``: of ``--param``. Raise ``SourceError`` for a
    missing folder, commit or path.
    """
    repository = Repository(folder)
    base, head = repository.commits_of(commits)
    inside = [_path_inside(repository.top, folder, path) for path in paths]
    with ExitStack() as stack:
        trees = [stack.enter_context(repository.files_of(commit)) for commit in (base, head)]
        for path in inside:
            if not any((tree / path).exists() for tree in trees):
                raise SourceError(f"{path}: neither commit has such a file or folder")
        before, after = (read_side(tree, inside, values) for tree in trees)
        before, after = (
            look_for_unread(before, after, trees[0]),
            look_for_unread(after, before, trees[1]),
        )
    machines = list(compare_machines(before, after, repository.renames(base, head)))
    return Review(
        *(base, head, machines),
        triggers=list(compare_triggers(before, after)),
        problems={"base": before.problems, "head": after.problems},
    )


def _path_inside(top: Path, folder: Path, path: Path) -> Path:
    whole = (folder / path).resolve()
    if not whole.is_relative_to(top):
        raise SourceError(f"{path}: the path is outside of the repository {top}")
    return whole.relative_to(top)


def replay_machines(
    machines: Sequence[MachineReview], connection: Callable[[], Connection], number: int
) -> tuple[dict[str, ReplayedMachine], str]:
    """Return the replays by state machine, and why there are none, "" if there are."""
    if not number:
        return {}, "--executions is 0"
    replayed = {}
    try:
        server = connection()
        for machine in machines:
            result = replay_machine(machine, server, number)
            if result is not None:
                replayed[machine.name] = result
    except (ConnectionRefused, BotoCoreError, ClientError) as error:
        return {}, " ".join(str(error).split())
    return replayed, "" if replayed else "the server has none of these state machines"


def write_review(review: Review, folder: Path) -> list[Path]:
    """Write ``review.md`` and the SVG files; return the paths. Raise ``OSError``.

    A symbolic link is replaced: a pull request could point it to any file of this machine.
    """
    if folder.is_symlink():
        raise FileExistsError(errno.EEXIST, "A symbolic link is no folder")
    folder.mkdir(parents=True, exist_ok=True)
    texts: dict[str, str] = {}
    pictures: dict[str, list[str]] = {}
    layouts = Layouts()
    try:
        for machine in review.machines:
            if machine.kind is ReviewKind.HIDDEN:
                continue
            stem = _file_name(machine.name, texts)
            drawn = {f"{stem}.{side}.svg": text for side, text in review_pictures(machine, layouts)}
            pictures[machine.name] = list(drawn)
            texts |= drawn
    finally:
        layouts.end()
    texts[REPORT] = write_markdown(replace(review, pictures=pictures))
    paths = {folder / name: text for name, text in texts.items()}
    for path, text in paths.items():
        if path.is_symlink():
            path.unlink()
        path.write_text(text, encoding="utf-8", newline="\n")
    return list(paths)


def _file_name(name: str, taken: Iterable[str]) -> str:
    """Return a safe, unique prefix for the file names of a state machine."""
    safe = re.sub(r"[^\w-]", "_", name, flags=re.ASCII)[:80] or "_"
    used = {file.partition(".")[0].lower() for file in taken}
    names = (f"{safe}-{number}" if number else safe for number in itertools.count())
    return next(stem for stem in names if stem.lower() not in used)
