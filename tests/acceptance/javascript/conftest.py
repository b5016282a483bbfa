"""Nothing here can run without Node."""

from __future__ import annotations

import shutil

collect_ignore_glob = [] if shutil.which("npm") and shutil.which("node") else ["test_*.py"]
