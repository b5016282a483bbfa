"""The command of a feature that a server leaves out says so in one sentence."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from django.test import override_settings

from console import command_line
from console.feature import declared_features
from console.features import NAMES
from tests.acceptance.server import ROOT

COMMANDS = sorted(
    (name, feature.name) for feature in declared_features() for name in feature.commands
)
"""Each command of a feature, and the feature."""


@pytest.mark.parametrize(("name", "feature"), COMMANDS)
def test_a_command_that_is_left_out_says_so(name: str, feature: str) -> None:
    """It names the feature, and reads nothing."""
    others = tuple(each for each in NAMES if each != feature)
    with override_settings(STATEYARD_FEATURES=others), pytest.raises(SystemExit) as end:
        command_line.main([name, "--help"])
    said = f"stateyard: {name}: STATEYARD_FEATURES leaves out the feature {feature}"
    assert end.value.code == said


def test_no_command_has_two_features() -> None:
    """A name is the core's, or of one feature."""
    names = [name for feature in declared_features() for name in feature.commands]
    of_core = [name for commands in command_line.COMMANDS.values() for name in commands]
    assert len({*names, *of_core}) == len(names) + len(of_core)


def test_a_client_command_reads_the_variable() -> None:
    """Without Django, and without settings; an unknown feature is named."""
    module = [sys.executable, "-m", "console.command_line", "load", "--help"]
    assert run(*module, features="palette") == (
        "stateyard: load: STATEYARD_FEATURES leaves out the feature load"
    )
    assert run(*module, features="load") == ""
    assert run(*module, features="loads").startswith(
        "stateyard: STATEYARD_FEATURES: got 'loads', wanted none, or of: "
    )


def run(*words: str, features: str) -> str:
    """Return the error output of a command with these features."""
    env = {**os.environ, "STATEYARD_FEATURES": features}
    done = subprocess.run(words, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == (1 if done.stderr else 0)
    return done.stderr.rstrip("\n")
