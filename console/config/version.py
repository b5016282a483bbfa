"""Find the version of the running server, for pages, log and ``stateyard --version``.

A wheel has a fixed version. In a git checkout, ``pyproject.toml`` has the version of the last
release, so the number of commits since the release's tag is added: ``0.3.1.dev12+abc1234``. An
image has the files of a checkout without its history: it has the version of ``pyproject.toml``, and
the revision set by its builder.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]
_DESCRIBED = re.compile(r"v?(\d+)\.(\d+)\.(\d+)-(\d+)-g([0-9a-f]+)")
_GIT_S = 5.0


@lru_cache(maxsize=1)
def server_version() -> str:
    """Return the package's name and version; a git checkout adds the commits since the last tag.

    The result is cached: ``git pull`` does not change the code of a running server.
    """
    number = _checkout_version(_ROOT) or _installed_version() or _image_version(_ROOT)
    return f"stateyard {number}" if number else "stateyard, not installed"


def _installed_version() -> str:
    from importlib.metadata import PackageNotFoundError, version  # slow: also imports ``email``

    try:
        return version("stateyard")
    except PackageNotFoundError:  # copied into an image, without its metadata
        return ""


def _image_version(root: Path) -> str:
    """Return the version of the files of an image, ``0.3.0`` or ``0.3.0+abc1234``; "" elsewhere."""
    if not (root / "pyproject.toml").exists():
        return ""
    revision = root / "revision"
    name = revision.read_text(encoding="utf-8").strip() if revision.exists() else ""
    return f"{_project_version(root)}+{name}" if name else _project_version(root)


def _checkout_version(root: Path) -> str:
    """Return the version of a git checkout; "" without ``.git``, without git, or if git fails."""
    if not (root / ".git").exists():
        return ""
    described = _describe_commit(root)
    tagged = _DESCRIBED.fullmatch(described)
    if tagged is None:  # a clone without tags: git names the commit alone
        return f"{_project_version(root)}+{described}" if described else ""
    major, minor, patch, distance, commit = tagged.groups()
    if distance == "0":
        return f"{major}.{minor}.{patch}"
    return f"{major}.{minor}.{int(patch) + 1}.dev{distance}+{commit}"


def _describe_commit(root: Path) -> str:
    """Return ``TAG-COMMITS-gHASH``, or the hash alone without a release tag; "" if git fails."""
    import shutil
    import subprocess

    git = shutil.which("git")
    if git is None:
        return ""
    # --git-dir wins over a GIT_DIR in the environment, which names another repository if a git
    # hook starts the server.
    tags = ("--match=[0-9]*.[0-9]*.[0-9]*", "--match=v[0-9]*.[0-9]*.[0-9]*")
    command = [git, f"--git-dir={root / '.git'}", "describe", "--long", "--always", "--abbrev=7"]
    try:
        answer = subprocess.run(  # noqa: S603 - constants and a folder of ours
            [*command, *tags], capture_output=True, text=True, timeout=_GIT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return answer.stdout.strip() if answer.returncode == 0 else ""


def _project_version(root: Path) -> str:
    """Return the version in ``pyproject.toml``; that of an editable install may be older."""
    import tomllib

    with (root / "pyproject.toml").open("rb") as file:
        return str(tomllib.load(file)["project"]["version"])
