"""What the README tells people to type, so that a test types the same."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
BIN = Path(sys.executable).parent


def blocks(heading: str) -> dict[str, str]:
    """Return language -> first fenced block of it in the section under a heading."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    section = re.split(r"^## ", text.partition(f"\n## {heading}\n")[2], flags=re.MULTILINE)[0]
    by_language: dict[str, str] = {}
    for language, block in re.findall(r"^```(\w+)\n(.*?)^```", section, re.MULTILINE | re.DOTALL):
        by_language.setdefault(language, block)
    return by_language


FIRST_STEPS = blocks("First call")
(EXPORT,) = [line for line in FIRST_STEPS["sh"].splitlines() if line.startswith("export ")]


def typed(home: Path, lines: str, folder: Path = ROOT) -> str:
    """Return what lines print in the shell of somebody who never used a client of AWS's."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    env |= {"HOME": str(home), "PATH": f"{BIN}:{env['PATH']}", "AWS_PAGER": ""}
    env |= {"AWS_EC2_METADATA_DISABLED": "true"}
    done = subprocess.run(
        ["bash", "-euc", lines],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
