"""A server without a feature, or without all of them, has no trace of it on its pages."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from console.feature import chosen_features
from console.features import NAMES
from tests import initial_database
from tests.acceptance.server import ROOT

_LOOK = """
import json, sys
import django
django.setup()
from django.core.management import call_command
from django.test import Client
from console.feature import chosen_features
from console.models import Project
Project.objects.create(name="default", account_id="123456789012")
call_command("member", "ana", "--role", "owner", stdout=open("/dev/null", "w"))
from django.contrib.auth import get_user_model
client = Client(headers={"host": "localhost"})
client.force_login(get_user_model().objects.get(username="ana"))
pages = {path: client.get(path) for path in json.loads(sys.argv[1])}
print(json.dumps({
    "features": [feature.name for feature in chosen_features()],
    "pages": {path: [page.status_code, page.content.decode()] for path, page in pages.items()},
}))
"""
CORE = ("/", "/machines/", "/executions/", "/tasks/", "/operations/", "/team/", "/audit/", "/no/")
ADDRESSES = {"palette": "/palette/"}
"""Feature -> an address of it, by which other pages would lead to it."""


@pytest.mark.parametrize("left_out", sorted({*((name,) for name in NAMES), NAMES}))
def test_the_core_works_without(left_out: tuple[str, ...], tmp_path_factory: Any) -> None:
    """Pages of the core answer and name no address of it; its own address is not found.

    What needs a feature is left out with it.
    """
    needs = {feature.name: {*feature.needs} for feature in chosen_features()}
    left_out = tuple(name for name in NAMES if {name, *needs[name]} & {*left_out})
    kept = [name for name in NAMES if name not in left_out]
    found = look({"STATEYARD_FEATURES": ",".join(kept) or "none"}, tmp_path_factory)
    assert found["features"] == kept
    for path in CORE:
        status, text = found["pages"][path]
        assert status == (404 if path == "/no/" else 200), path
        named = [name for name, address in ADDRESSES.items() if f'"{address}' in text]
        assert not {*named} & {*left_out}, path
    for name, address in ADDRESSES.items():
        assert found["pages"][address][0] == (404 if name in left_out else 200), name


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
    command = [sys.executable, "-c", _LOOK, json.dumps([*CORE, *ADDRESSES.values()])]
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
        f"STATEYARD_FEATURES: got 'alarm', wanted none, or of: {', '.join(NAMES)}"
    ]
