"""Which cases are there, how are answers compared, and which recordings cannot be met?"""

from __future__ import annotations

import importlib.util
import json
import os
import re
from functools import lru_cache
from pathlib import Path
from typing import Any

FOLDER = Path(os.environ.get("STEPYARD_SHARED", "")) / "conformance"
RUNNER = FOLDER / "run.py"
DEFINITIONS = FOLDER.parent / "definitions"
_GAP = "the ids show a ParallelStateSucceeded that the recorded list leaves out"
_PLACEHOLDER = "what was sent or answered is recorded as a placeholder that is not marked as one"
_OLDER = "recorded before DescribeStateMachine had encryptionConfiguration; newer ones have it"
_WORKER = "wants an activity worker, which the runner does not bring"

CANNOT = {
    r"test_map_state_label_(invalid_char|empty|too_long)_fail": "a Python error of the recorder, "
    "not in the form that every other recorded InvalidDefinition has",
    r"test_parallel_state_(order|nested)$": _GAP,
    r"BASE_SCOPE_PARALLEL": _GAP,
    r"test_max_concurrency_path_negative": "recorded while it ran: one event of three",
    r"test_sfn_api/test_start_execution$": "lists the execution as ended right after its start",
    r"test_state_machine_status_filter": "lists the execution as ended right after its start",
    r"BASE_REFERENCE_IN_WAIT": _PLACEHOLDER,
    r"REFERENCE_IN_MAX_CONCURRENCY_PATH": "shows the output 1 as a number, its input as a text",
    r"(describe_execution|history|list_execution|version)_no_such_|describe_nonexistent_sm": (
        _PLACEHOLDER
    ),
    r"test_sfn_api_aliasing/": _PLACEHOLDER,
    r"test_describe_sm_arn_containing_punctuation|test_create_(exact_duplicate|duplicate_)": _OLDER,
    r"test_create_update_state_machine_(base|same)": _OLDER,
    r"incomplete_logging_configuration\[logging_configuration0\]": _OLDER,
    r"versioning/test_(create_publish_describe_with|publish_state_machine_version$)": _OLDER,
    r"test_describe_state_machine_for_execution_of_version": _OLDER,
    r"activities/test_activity_task_(no_worker_name|start_timeout)": _WORKER,
    r"activities/test_activity_task_on_deleted": _PLACEHOLDER,
    r"callback/test_callback/test_start_execution_sync": "shows how long the service's own answer "
    "to StartExecution was",
    r"test_sfn_task_service/test_start_execution": "shows a header as a text that every other "
    "recording shows as a list",
}
"""Regular expression of case ids -> why the recording cannot be met."""


@lru_cache(maxsize=1)
def runner() -> Any:
    """Return the runner's module, whose comparison is the one that counts."""
    return fresh_runner()


def fresh_runner() -> Any:
    """Return a copy of the runner's module of one's own."""
    spec = importlib.util.spec_from_file_location("conformance_runner", RUNNER)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def load() -> list[dict[str, Any]]:
    """Return every case."""
    files = [file for file in sorted(FOLDER.glob("*.json")) if file.name != "INDEX.json"]
    return [case for file in files for case in json.loads(file.read_text(encoding="utf-8"))]


def excuse(case_id: str) -> str:
    """Return why a case need not pass, "" if it must."""
    return next((why for pattern, why in CANNOT.items() if re.search(pattern, case_id)), "")
