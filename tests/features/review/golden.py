"""The pairs of commits whose reviews are recorded; ``python -m tests.features.review.golden``.

``pairs/NAME/before`` and ``pairs/NAME/after`` are the files of two commits, ``recorded/NAME`` is
their review. Running the module records all reviews again.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PAIRS = HERE / "pairs"
RECORDED = HERE / "recorded"
HUNDRED = "hundred"
"""The pair that is made here: a state machine with 100 states."""
NAMES = sorted([*(path.name for path in PAIRS.iterdir()), HUNDRED])
_STEPS = ("Read", "Check", "Price", "Book", "Confirm")


def run_git(folder: Path, *arguments: str) -> str:
    """Run git in a folder, with an author, a time and no configuration of this machine."""
    env = {
        **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
        **{f"GIT_{who}_NAME": "Ada" for who in ("AUTHOR", "COMMITTER")},
        **{f"GIT_{who}_EMAIL": "ada@example.com" for who in ("AUTHOR", "COMMITTER")},
        **{f"GIT_{who}_DATE": "2026-01-01T00:00:00Z" for who in ("AUTHOR", "COMMITTER")},
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
    }
    done = subprocess.run(
        ["git", *arguments], cwd=folder, env=env, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode().strip()


def commit(folder: Path, files: dict[str, str | bytes | None]) -> str:
    """Commit files of a folder, which becomes a repository; return the hash. None: deleted."""
    folder.mkdir(exist_ok=True)
    if not (folder / ".git").exists():
        run_git(folder, "init", "--quiet", "--initial-branch=main")
    for name, text in files.items():
        path = folder / name
        if text is None:
            path.unlink()
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    run_git(folder, "add", "--all")
    run_git(folder, "commit", "--quiet", "--allow-empty", "--message=change")
    return run_git(folder, "rev-parse", "HEAD")


def make_repository(folder: Path, name: str) -> None:
    """Make a repository with the two commits of a pair."""
    if name == HUNDRED:
        commit(folder, {"trips.asl.json": json.dumps(hundred_states(changed=False))})
        commit(folder, {"trips.asl.json": json.dumps(hundred_states(changed=True))})
        return
    sides = [
        {
            str(path.relative_to(PAIRS / name / side)): path.read_bytes()
            for path in sorted((PAIRS / name / side).rglob("*"))
            if path.is_file()
        }
        for side in ("before", "after")
    ]
    commit(folder, {**sides[0]})
    commit(folder, {**dict.fromkeys(sides[0].keys() - sides[1].keys()), **sides[1]})


def hundred_states(*, changed: bool) -> dict[str, Any]:
    """Return a definition with 100 states: bookings with a Choice and a Catcher each."""
    function = "arn:aws:lambda:us-east-1:123456789012:function:"
    states: dict[str, Any] = {}
    stops = [f"Stop {number}" for number in range(1, 17)]
    for number, stop in enumerate(stops):
        following = stops[number + 1] if number + 1 < len(stops) else "Finish"
        steps = [f"{step} {stop.lower()}" for step in _STEPS]
        states[stop] = {
            "Type": "Choice",
            "Choices": [{"Variable": "$.skip", "NumericEquals": number, "Next": following}],
            "Default": steps[0],
        }
        for step, after in zip(steps, [*steps[1:], following], strict=True):
            states[step] = {"Type": "Task", "Resource": function + step.split()[0], "Next": after}
        states[steps[3]]["Catch"] = [{"ErrorEquals": ["Sold.Out"], "Next": "Give up"}]
    states["Finish"] = {
        "Type": "Parallel",
        "Branches": [
            {"StartAt": "Mail", "States": {"Mail": {"Type": "Pass", "End": True}}},
            {"StartAt": "Print", "States": {"Print": {"Type": "Pass", "End": True}}},
        ],
        "End": True,
    }
    states["Give up"] = {"Type": "Fail", "Error": "Sold.Out"}
    if changed:
        states["Price stop 8"]["TimeoutSeconds"] = 20
        states["Confirm stop 12"]["Next"] = "Thank stop 12"
        states["Thank stop 12"] = {"Type": "Wait", "Seconds": 5, "Next": "Stop 13"}
        states["Read stop 3"]["Next"] = states.pop("Check stop 3")["Next"]
    return {"StartAt": stops[0], "States": states}


def record() -> None:
    """Write the reviews of all pairs to ``recorded``."""
    import tempfile

    from tests.features.review.test_golden import review_of

    shutil.rmtree(RECORDED, ignore_errors=True)
    for name in NAMES:
        with tempfile.TemporaryDirectory() as folder:
            make_repository(Path(folder), name)
            review_of(Path(folder), RECORDED / name)


if __name__ == "__main__":
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    django.setup()
    record()
