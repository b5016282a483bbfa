"""Every command prints errors as ``stateyard: …`` and ends with 1 (failed) or 2 (wrong use)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from botocore.config import Config
from django.core.management import get_commands, load_command_class
from django.db import connections

from console import command_line
from console.cli import connection

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from console.models import Project

ALL = sorted(name for group in command_line.all_commands().values() for name in group)
ARN = "arn:aws:states:us-east-1:123456789012:execution:orders:e1"
NO_FILE = "nowhere.asl.json"
WRONG_USES = {
    "branch": ("list", "--aws"),
    "coverage": (NO_FILE,),
    "deploy": ("pass.asl.json", "--prune"),
    "export": (NO_FILE,),
    "fetch": ("orders",),
    "lint": (NO_FILE,),
    "load": ("orders", "--rate", "fast", "--for", "1s"),
    "logs": (NO_FILE,),
    "next_starts": ("--remove",),
    "open": (NO_FILE,),
    "pause": (ARN, "--aws"),
    "pull": ("--profile", "nobody"),
    "reset": ("--profile", "nobody"),
    "resilience": (NO_FILE,),
    "resume": (ARN, "--aws"),
    "role": (NO_FILE,),
    "settings": ("export", "--dry-run"),
    "start": ("orders", "--input", "no JSON"),
    "status": ("--aws",),
    "test": ("generate", NO_FILE),
    # management commands
    "check_invariants": ("--since", "yesterday"),
    "import_machines": (NO_FILE,),
    "key": ("list", "--project", "nothing"),
    "login_url": ("--user", "nobody"),
    "member": ("robot", "--project", "nothing"),
    "project": ("delete", "default"),
    "prune": ("--older-than", "soon"),
    "replay": (NO_FILE,),
    "reset_second_factor": ("nobody",),
    "review": ("HEAD",),
    "service_account": ("list", "--project", "nothing"),
    "up": ("--host", "0.0.0.0", "--allow-reset"),
}
WITHOUT_SERVER = {
    "branch": ("list",),
    "coverage": ("orders",),
    "deploy": ("pass.asl.json",),
    "export": ("orders",),
    "fetch": (ARN,),
    "load": ("orders", "--rate", "1", "--for", "1s"),
    "logs": ("orders",),
    "next_starts": (),
    "open": ("orders", "--print"),
    "pause": ("--schedules",),
    "pull": (),
    "reset": (),
    "resilience": ("orders",),
    "resume": ("--schedules",),
    "role": ("orders",),
    "settings": ("export",),
    "start": ("orders",),
    "status": (),
    "test": ("generate", ARN),
}
FAILED = {"administrator": ("nobody", "--remove"), "worker_health": ()}


@pytest.fixture(autouse=True)
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in a folder with a definition, and with the address of a server that does not answer."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pass.asl.json").write_text(
        '{"StartAt": "P", "States": {"P": {"Type": "Pass", "End": true}}}', encoding="utf-8"
    )
    for name in ("AWS_PROFILE", "AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
        monkeypatch.delenv("AWS_PROFILE", raising=False)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "AKIAIOSFODNN7EXAMPLE")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    once = Config(retries={"total_max_attempts": 1}, inject_host_prefix=False)
    monkeypatch.setattr(connection, "_configuration", lambda _: once)
    monkeypatch.setattr(connections, "close_all", lambda: None)  # of the test


def run(capsys: pytest.CaptureFixture[str], name: str, *words: str) -> tuple[int, str]:
    """Run a command as ``stateyard`` does after its set-up; return exit code and stderr."""
    main: Callable[[list[str]], None] = command_line.main
    if not command_line.client_module(name):
        main = load_command_class(get_commands()[name], name).run_from_argv
        words = (name, *words)
        name = "stateyard"
    with pytest.raises(SystemExit) as end:
        main([name, *words])
    return int(end.value.code or 0), capsys.readouterr().err


@pytest.mark.parametrize("name", ALL)
def test_an_unknown_option_is_wrong_use(capsys: pytest.CaptureFixture[str], name: str) -> None:
    """The parser says so, with the usage."""
    code, text = run(capsys, name, "--no-such-option")
    assert code == 2
    assert f"stateyard {name}: error: " in text


@pytest.mark.parametrize("name", WRONG_USES)
def test_wrong_use_ends_with_2(
    capsys: pytest.CaptureFixture[str], project: Project, name: str
) -> None:
    """A value, a file or a name that the command cannot use."""
    del project
    code, text = run(capsys, name, *WRONG_USES[name])
    assert (code, [line[:11] for line in text.splitlines()]) == (2, ["stateyard: "]), text


@pytest.mark.parametrize("name", WITHOUT_SERVER)
def test_a_server_that_does_not_answer_ends_with_1(
    capsys: pytest.CaptureFixture[str], name: str
) -> None:
    """The line names its address."""
    code, text = run(capsys, name, *WITHOUT_SERVER[name])
    (line,) = text.splitlines()
    assert code == 1
    assert line.startswith("stateyard: ")
    assert "http://127.0.0.1:9" in line


@pytest.mark.parametrize("name", FAILED)
def test_a_refusal_ends_with_1(
    capsys: pytest.CaptureFixture[str], project: Project, name: str
) -> None:
    """The words were right, and the database or the machine has something else."""
    del project
    code, text = run(capsys, name, *FAILED[name])
    assert code == 1
    assert text.startswith("stateyard: ")


def test_the_tables_have_every_command() -> None:
    """A new command decides what its wrong use and its failure are."""
    only_options = {
        "bump_epoch",
        "check",
        "doctor",
        "export_machines",
        "prepare_database",
        "schema",
    }
    only_options |= {"verify_audit", "web", "worker"}
    assert {*ALL} == WRONG_USES.keys() | FAILED.keys() | only_options
    on_a_server = command_line.client_commands() - {"lint", "schema"}
    assert on_a_server == WITHOUT_SERVER.keys()
