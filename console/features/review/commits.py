"""Read the files of two commits of a git repository, by the program ``git``."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from console.cli.documents import SourceError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_SHORT = 7
_RANGE = re.compile(r"(?!-)((?:(?!\.\.).)+)(\.{2,3})(?![-.])((?:(?!\.\.).)+)")
"""Two commit names: neither is an option, and neither contains two dots."""
_SHALLOW = (
    "The clone is shallow: run `git fetch --unshallow`, or set `fetch-depth: 0` of actions/checkout"
)


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit. ``name``: as given by the user; ``hash``: 40 or 64 hexadecimal digits."""

    name: str
    hash: str

    @property
    def short(self) -> str:
        """Return the first digits of the hash."""
        return self.hash[:_SHORT]


class Repository:
    """The git repository of a folder. ``top``: its work tree."""

    def __init__(self, folder: Path) -> None:
        """Raise ``SourceError`` if the folder is in no work tree, or git is missing."""
        self.top = folder
        self.top = Path(self._git("rev-parse", "--show-toplevel").strip()).resolve()

    def commits_of(self, text: str) -> tuple[Commit, Commit]:
        """Return the commits of ``BASE..HEAD``; for ``BASE...HEAD`` BASE is the merge base."""
        match = _RANGE.fullmatch(text)
        if match is None:
            raise SourceError(f"{text!r} is no range of commits: write BASE..HEAD or BASE...HEAD")
        base, dots, head = match.groups()
        before, after = self._commit(base), self._commit(head)
        if dots == "...":
            before = Commit(base, self._merge_base(before, after))
        return before, after

    def _commit(self, name: str) -> Commit:
        try:
            printed = self._git("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
        except SourceError:
            hint = f". {_SHALLOW}" if self._is_shallow() else ""
            raise SourceError(f"{name}: there is no such commit in {self.top}{hint}") from None
        return Commit(name, printed.strip())

    def _merge_base(self, before: Commit, after: Commit) -> str:
        try:
            return self._git("merge-base", before.hash, after.hash).strip()
        except SourceError:
            hint = f". {_SHALLOW}" if self._is_shallow() else ""
            names = f"{before.name} and {after.name}"
            raise SourceError(f"{names}: there is no common ancestor{hint}") from None

    def _is_shallow(self) -> bool:
        return self._git("rev-parse", "--is-shallow-repository").strip() == "true"

    @contextmanager
    def files_of(self, commit: Commit) -> Iterator[Path]:
        """Context manager: write the files of a commit to a temporary folder.

        The user's index and work tree stay unchanged.
        """
        with tempfile.TemporaryDirectory(prefix="stateyard-review-") as folder:
            index = {"GIT_INDEX_FILE": str(Path(folder, "index")), "GIT_LFS_SKIP_SMUDGE": "1"}
            tree = Path(folder, "tree")
            tree.mkdir()
            self._git("read-tree", commit.hash, env=index)
            self._git("checkout-index", "--all", f"--prefix={tree}/", env=index)
            yield tree

    def renames(self, before: Commit, after: Commit) -> dict[str, str]:
        """Return new path -> former path of each renamed file."""
        listed = self._git(
            *("diff", "--no-ext-diff", "-M", "--diff-filter=R", "--name-status", "-z"),
            *(before.hash, after.hash),
        ).split("\0")
        return dict(zip(listed[2::3], listed[1::3], strict=False))

    def _git(self, *arguments: str, env: Mapping[str, str] | None = None) -> str:
        """Return git's output; raise ``SourceError`` with its last line on failure."""
        command = ["git", "-C", str(self.top), *arguments]
        try:
            done = subprocess.run(  # noqa: S603 - no shell, and no option of another's
                command,
                env={**os.environ, "LC_ALL": "C", **(env or {})},
                capture_output=True,
                check=False,
            )
        except FileNotFoundError:
            raise SourceError("git: there is no such program on the PATH") from None
        if done.returncode:
            lines = done.stderr.decode("utf-8", "replace").strip().splitlines() or ["it failed"]
            reason = next((line for line in lines if line.startswith("fatal:")), lines[-1])
            raise SourceError(f"{self.top}: git {arguments[0]}: {reason.removeprefix('fatal: ')}")
        return done.stdout.decode("utf-8", "surrogateescape")
