"""Every command takes the data folder by ``--data``, and makes no database where it needs one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.core.management import get_commands, load_command_class

from console import command_line
from tests import initial_database
from tests.console.config.test_settings import run

if TYPE_CHECKING:
    from pathlib import Path

NEEDS_DATABASE = {
    *("bump_epoch", "check_invariants", "export_machines", "import_machines"),
    *("administrator", "login_url", "member", "project", "prune", "doctor", "verify_audit"),
    *("key", "service_account", "reset_second_factor"),
}
NO_DATABASE = {"lint", "replay", "review"}
SERVE = {"up", "web", "worker", "worker_health", "prepare_database"}


def test_the_lists_have_every_command() -> None:
    """A new command decides whether it needs a database."""
    own = {name for name, app in get_commands().items() if app.partition(".")[0] == "console"}
    assert own == NEEDS_DATABASE | NO_DATABASE | SERVE


@pytest.mark.parametrize("name", sorted(NEEDS_DATABASE))
def test_a_command_that_needs_a_database_is_refused_without_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The check comes before the settings, which would make a secret in the folder."""
    monkeypatch.setenv("STATEYARD_DATA", str(tmp_path / "default"))
    monkeypatch.delenv("STATEYARD_DATABASE_URL", raising=False)
    with pytest.raises(SystemExit, match=f"{tmp_path / 'yard'}: got no database there, wanted"):
        command_line.set_up(["manage.py", name, "--data", str(tmp_path / "yard")])
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_made_in_a_folder_without_a_database(tmp_path: Path) -> None:
    """One line, no database, and no secret that could be taken for the server's."""
    done = run(tmp_path / "default", "bump_epoch", f"--data={tmp_path / 'elsewhere'}")
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.endswith("wanted the data folder of a server, by --data or STATEYARD_DATA")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("words", [("--data", "{}"), ("--data={}",)], ids=["two words", "one word"])
def test_the_option_wins_over_the_variable(tmp_path: Path, words: tuple[str, ...]) -> None:
    """``bump_epoch`` after a restore works on the folder that it is told."""
    folder = tmp_path / "yard"
    initial_database.copy_to(folder)
    done = run(tmp_path / "default", "bump_epoch", *(word.format(folder) for word in words))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("epoch ")
    assert not (tmp_path / "default").exists()


@pytest.mark.parametrize("name", sorted(NEEDS_DATABASE | SERVE))
def test_the_help_names_the_option(name: str) -> None:
    """A user finds it where the other options are."""
    parser = load_command_class(get_commands()[name], name).create_parser("manage.py", name)
    assert "--data DIR" in parser.format_help()


@pytest.mark.slow
def test_a_command_of_django_takes_it_too(tmp_path: Path) -> None:
    """There is one way to name the folder."""
    folder = tmp_path / "yard"
    initial_database.copy_to(folder)
    done = run(tmp_path / "default", "migrate", "--check", "--data", str(folder))
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("word", ["--data", "--data="])
def test_the_option_needs_a_value(capsys: pytest.CaptureFixture[str], word: str) -> None:
    """An empty folder name would be the default folder."""
    with pytest.raises(SystemExit) as end:
        command_line.set_up(["bump_epoch", word])
    assert end.value.code == 2
    assert capsys.readouterr().err == "stateyard: --data: got no value, wanted a folder\n"


@pytest.mark.slow
def test_a_database_without_tables_ends_a_command_with_one_line(tmp_path: Path) -> None:
    """A file that is no yard's database: no traceback."""
    (tmp_path / "stateyard.sqlite3").touch()
    done = run(tmp_path, "bump_epoch")
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "stateyard: the database refused: no such table: console_serverfact"
    ]
