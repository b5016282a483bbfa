"""AWS's SDK for JavaScript works with the server."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.acceptance.server import Server

pytestmark = pytest.mark.acceptance
CLIENT = Path(__file__).with_name("client.mjs")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the SDK and the client."""
    folder = tmp_path_factory.mktemp("javascript")
    command = ["npm", "install", "--silent", "--no-audit", "--no-fund", "@aws-sdk/client-sfn@3"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=300)
    shutil.copy(CLIENT, folder)
    return folder


def test_the_sdk_for_javascript(installed: Path, up: Server) -> None:
    """The SDK signs calls rightly, and understands answers, times, histories and errors."""
    key, secret = up.keys()
    keys = {"AWS_ACCESS_KEY_ID": key, "AWS_SECRET_ACCESS_KEY": secret}
    done = subprocess.run(
        ["node", CLIENT.name, up.url],
        cwd=installed,
        env=os.environ | keys,
        capture_output=True,
        text=True,
        check=False,
        timeout=180,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "status": "SUCCEEDED",
        "output": '{"ä": [1, 2.50]}',
        "isDate": True,
        "types": ["ExecutionStarted", "PassStateEntered", "PassStateExited", "ExecutionSucceeded"],
        "refused": "ExecutionDoesNotExist",
    }
