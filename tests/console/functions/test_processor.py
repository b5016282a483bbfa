"""A server keeps to one processor, unless a setting gives it all of them; functions never do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = """
import os, threading
from console.functions.cpu_affinity import stay_on_one
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
    """A server keeps to one processor; STATEYARD_PROCESSORS=all lets it use each it may."""
    environment = {**os.environ, "STATEYARD_PROCESSORS": said}
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True
    )
    inherited, allowed, used, available = ran.stdout.split()
    assert (inherited, allowed) == ("True", "True")
    assert used == (available if said == "all" else "1")


CALL = """
import os, sys, uuid
before = os.sched_getaffinity(0)
from console.functions.cpu_affinity import stay_on_one
stay_on_one()
from console.functions import lambda_runtime
from console.config.function_options import FunctionOptions
from console.functions.process import FunctionKey, FunctionProcess, clean_environment
options = FunctionOptions(folder=sys.argv[1])
key = FunctionKey("count", "counting:count", options, ())
process = FunctionProcess(key, clean_environment(options))
try:
    request = str(uuid.uuid4())
    process.set_up(request, lambda_runtime.function_fields("count", 128))
    print(process.call(request, "arn", "count", 0, "", "{}").text)
    print(sorted(before))
finally:
    process.close()
"""


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="not known on this system")
def test_the_process_of_a_function_uses_all_processors(tmp_path: Path) -> None:
    """A function that computes must not wait for the server, nor for another function."""
    (tmp_path / "counting.py").write_text(
        "import os\ndef count(event, context):\n    return sorted(os.sched_getaffinity(0))\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", CALL, str(tmp_path)], capture_output=True, text=True, check=True
    )
    used, allowed = ran.stdout.splitlines()
    assert json.loads(used) == json.loads(allowed)
