"""A feature that needs another one is refused without it, before anything starts."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from console.feature import chosen_features
from console.features import NAMES
from tests.acceptance.server import ROOT

NEEDS = {
    "alarms": ("metrics", "notifications"),
    "approvals": ("notifications", "tasks"),
    "branches": ("projects",),
    "bulk": ("replay",),
    "hot_states": ("metrics",),
    "next_starts": ("breakpoints", "faults"),
    "review": ("exports", "metrics"),
    "test_state": ("data_flow",),
}
"""Feature -> the features without which it does not work."""


def test_features_say_what_they_need() -> None:
    """These, and they are there; whatever is needed needs nothing itself."""
    needs = {feature.name: feature.needs for feature in chosen_features() if feature.needs}
    assert needs == NEEDS
    needed = {name for names in needs.values() for name in names}
    assert needed <= {*NAMES} - {*needs}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "needed"), [(name, needed) for name, of in NEEDS.items() for needed in of]
)
def test_a_feature_is_refused_without_what_it_needs(name: str, needed: str) -> None:
    """In one line, by the command line; whatever imports Django itself gets it as an error."""
    chosen = ",".join((name, *(each for each in NEEDS[name] if each != needed)))
    line = f"STATEYARD_FEATURES: {name} needs {needed}, which is left out"
    said, code = run("manage.py", "check", features=chosen)
    assert (said, code) == ([f"stateyard: {line}"], 1)
    said, code = run("-c", "import django; django.setup()", features=chosen)
    assert said[-1].endswith(f"ImproperlyConfigured: {line}")
    assert code == 1


@pytest.mark.slow
def test_a_feature_is_taken_with_what_it_needs() -> None:
    """The others may be left out."""
    assert run("manage.py", "check", features="alarms,metrics,notifications")[1] == 0


def run(*words: str, features: str) -> tuple[list[str], int]:
    """Return the error lines and the exit code of a Python with these features."""
    env = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "console.config.settings",
        "STATEYARD_FEATURES": features,
    }
    command = [sys.executable, *words]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    return done.stderr.splitlines(), done.returncode
