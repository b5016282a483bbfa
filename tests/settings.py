"""Settings of the tests: those of the product, with a data folder and databases of their own.

pytest imports this module before any test. The product knows nothing of tests. What tests need
otherwise is set here, by the same settings that anybody may set.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys

import pytest

from console.config import local_options
from tests import run_folder
from tests.postgres import address

_FOLDER = run_folder.begin()
_OWN = (
    "STATEYARD_TEST_",
    "STATEYARD_SHARED",
    "STATEYARD_JSONATA_SUITE",
    "STATEYARD_REQUIRE_BROWSER",
)


def _chosen_database() -> str:
    """Return the URL that ``--db postgres`` stands for, "" for SQLite.

    pytest-django reads the settings before pytest reads the options of ``conftest.py``, so the
    command line is read here. The other processes of the run inherit the variable instead.
    ``STATEYARD_DATABASE_URL`` names a server that is there already.
    """
    inherited = os.environ.get("STATEYARD_TEST_DATABASE_URL", "")
    if "PYTEST_XDIST_WORKER" in os.environ:
        return inherited
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--db", default="sqlite")
    words = [*shlex.split(os.environ.get("PYTEST_ADDOPTS", "")), *sys.argv[1:]]
    if parser.parse_known_args(words)[0].db != "postgres":
        os.environ.pop("STATEYARD_TEST_DATABASE_URL", None)
        return ""
    url = os.environ.get("STATEYARD_DATABASE_URL") or inherited or address(_FOLDER / "postgres")
    os.environ["STATEYARD_TEST_DATABASE_URL"] = url
    return url


_DATABASE_URL = _chosen_database()

if os.environ.get("STATEYARD_DATABASE_URL") and not _DATABASE_URL:
    raise pytest.UsageError(
        "STATEYARD_DATABASE_URL is set: to test on that server, add --db postgres; else unset it"
    )
# Neither the tests nor the servers that they start obey the settings of the shell.
for _name in list(os.environ):
    _own = _name.startswith("STATEYARD_") and not _name.startswith(_OWN)
    if _own or _name in local_options.VARIABLES:
        del os.environ[_name]

os.environ["STATEYARD_DATA"] = str(_FOLDER / f"data-{os.getpid()}")
if _DATABASE_URL:
    os.environ["STATEYARD_DATABASE_URL"] = _DATABASE_URL
from console.config.settings import *  # noqa: E402, F403 - these are the settings that it adds to
from console.config.settings import DATABASES  # noqa: E402

for _name in ("STATEYARD_DATA", "STATEYARD_DATABASE_URL", "DJANGO_SETTINGS_MODULE"):
    os.environ.pop(_name, None)  # a server that a test starts has its own

_OPTIONS = DATABASES["default"]["OPTIONS"]
if _DATABASE_URL:
    # Django closes connections of a test database, which it could not do to those of a pool
    del _OPTIONS["pool"]
else:
    DATABASES["default"]["TEST"] = {"NAME": _FOLDER / f"test-{os.getpid()}.sqlite3"}
    # no test cuts the power: what is written need not reach the disk
    _OPTIONS["init_command"] = _OPTIONS["init_command"].replace(
        "synchronous=FULL", "synchronous=OFF"
    )

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]  # the default takes 0.2 s
WHITENOISE_AUTOREFRESH = True  # static files are looked up when asked for, not at each first use
STATEYARD_FUNCTION_PROCESSES = 0  # functions of tests keep what they were called with
STATEYARD_LAYOUTS = None  # a layout is computed where a test asks for it
