"""A server keeps to one processor, unless a setting gives it all of them."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAM = """
import os, threading
from console.fast_path.cpu_affinity import stay_on_one
before = os.sched_getaffinity(0)
stay_on_one()
seen = []
thread = threading.Thread(target=lambda: seen.append(os.sched_getaffinity(0)))
thread.start()
thread.join()
print(seen[0] == os.sched_getaffinity(0), seen[0] <= before, len(seen[0]), len(before))
"""


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="not known on this system")
@pytest.mark.parametrize("said", ["", "all"])
def test_its_threads_share_one_of_those_it_may_use(said: str) -> None:
    """A server keeps to one processor; STEPYARD_PROCESSORS=all lets it use each it may."""
    environment = {**os.environ, "STEPYARD_PROCESSORS": said}
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True
    )
    inherited, allowed, used, available = ran.stdout.split()
    assert (inherited, allowed) == ("True", "True")
    assert used == (available if said == "all" else "1")
