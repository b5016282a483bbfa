"""Collect only what has its recordings: see README.md."""

from __future__ import annotations

import os

collect_ignore_glob = [] if os.environ.get("STATEYARD_SHARED") else ["test_[!j]*.py"]
if "STATEYARD_JSONATA_SUITE" not in os.environ:
    collect_ignore_glob.append("test_jsonata_suite.py")
