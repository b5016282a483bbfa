"""A server without a feature, or without all of them, has no trace of it on its pages."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from typing import Any

import pytest

from console.feature import chosen_features
from console.features import NAMES
from tests import initial_database
from tests.acceptance.server import ROOT

_OF_CORE = re.compile(r"/machines/\w+/executions/run1/\?")
"""What shows a query is of the core, and there: no 404 stands for it."""
_MAP_RUN = re.compile(r"/machines/mapping/.*/map-runs/\d+/$")
_SIGNED = {
    "/api/branches": "branches",
    "/api/executions/paused": "pause",
    "/api/inputs": "named_inputs",
    "/api/next-starts": "next_starts",
    "/api/projects": "projects",
    "/api/schedules/paused": "notifications",
    "/api/settings": "project_settings",
}
"""Address -> its feature. It takes signed calls only: to the session of a person it answers 401."""
_OF_ADMINISTRATORS = {"/sign-in/", "/server-audit/", "/server-audit.csv"}
"""Refused to an owner who is no administrator: 403."""
_MAY_ANSWER = {200, 204, 302, 404, 405}
"""A file that is not there yet is 404; so is a page of what the yard has none of."""


@pytest.mark.slow
@pytest.mark.parametrize("left_out", sorted({(), *((name,) for name in NAMES), NAMES}))
def test_the_core_works_without(left_out: tuple[str, ...], tmp_path_factory: Any) -> None:
    """Every page answers as with all features, and no link leads to what is left out.

    What needs a feature is left out with it.
    """
    needs = {feature.name: {*feature.needs} for feature in chosen_features()}
    left_out = tuple(name for name in NAMES if {name, *needs[name]} & {*left_out})
    features = [name for name in NAMES if name not in left_out]
    seen = look({"STATEYARD_FEATURES": ",".join(features) or "none"}, tmp_path_factory)
    assert seen["features"] == features
    assert seen["dead"] == {}
    for path, feature in _SIGNED.items():
        assert seen["status"].pop(path, 404) == (401 if feature in features else 404)
    # no worker runs beside the pages: on a loaded machine its work has been waiting for too long
    assert seen["status"].pop("/readyz") in {200, 503}
    refused = {seen["status"].pop(path, 403) for path in _OF_ADMINISTRATORS}
    assert refused <= {403, 404}
    odd = {path: status for path, status in seen["status"].items() if status not in _MAY_ANSWER}
    assert odd == {}
    for page in ("/", "/machines/", "/machines/asking/", "/executions/", "/settings/"):
        assert seen["status"][page] == 200, page
    opened = {path: status for path, status in seen["status"].items() if _OF_CORE.match(path)}
    assert len(opened) > 9
    assert {*opened.values()} == {200}
    map_runs = {status for path, status in seen["status"].items() if _MAP_RUN.match(path)}
    assert map_runs == {200 if "map_runs" in features else 404}
    assert seen["status"]["/no/such/page/"] == 404


def look(settings: dict[str, str], folders: Any) -> dict[str, Any]:
    """Return the features and the pages of a server with settings: its names and its answers."""
    data = folders.mktemp("without") / "data"
    initial_database.copy_to(data)
    env = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "console.config.settings",
        "DJANGO_ALLOW_ASYNC_UNSAFE": "1",
        "STATEYARD_DATA": str(data),
        "STATEYARD_DATABASE_URL": "",
        **settings,
    }
    command = [sys.executable, "-m", "tests.features.left_out_pages"]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def test_an_unknown_feature_is_refused() -> None:
    """In one line that names what there is."""
    env = {**os.environ, "STATEYARD_FEATURES": "palette,alarm"}
    command = [sys.executable, "manage.py", "check"]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        f"stateyard: STATEYARD_FEATURES: got 'alarm', wanted none, or of: {', '.join(NAMES)}"
    ]
