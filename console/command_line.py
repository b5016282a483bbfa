"""The command ``stateyard``, and what ``manage.py`` shares with it.

``stateyard`` knows the commands of the table below and no others. Those of a client
(``console.cli``) talk to a server by its API: they read no settings and need no data folder. The
others are management commands of Django. ``manage.py`` also knows what Django brings along.
"""

from __future__ import annotations

import argparse
import difflib
import importlib
import os
import sys
from pathlib import Path
from typing import Any

from console.config.version import server_version

COMMANDS: dict[str, dict[str, str]] = {
    "Serve": {
        "up": "start pages, API and engine in one process",
        "web": "serve pages and API beside workers, on PostgreSQL",
        "worker": "work on the executions of a team, on PostgreSQL",
        "prepare_database": "bring the tables of a PostgreSQL up to date",
        "worker_health": "tell whether the workers of this machine are well",
        "check": "check the settings; --deploy: warn of what is not fit for a team",
    },
    "People": {
        "login_url": "make a one-time login link",
        "reset_second_factor": "take somebody's second factor away",
        "administrator": "make somebody an administrator of the server",
        "member": "give somebody a role in a project",
        "service_account": "create, list and delete programs of a project",
        "key": "create, list, rotate and delete access keys",
        "project": "create, list and rename projects",
    },
    "Data": {
        "prune": "remove executions that ended long ago",
        "bump_epoch": "fence older processes, after a restore",
        "check_invariants": "check what the database must hold",
        "doctor": "check a deployment, and say what to mend",
        "verify_audit": "find audit rows that were changed, removed or inserted",
        "export_machines": "print the state machines of a project as JSON",
        "import_machines": "create or update state machines from that JSON",
    },
    "Definitions": {
        "lint": "check definitions; exit code 1 if one has an error",
        "schema": "print a JSON Schema of definitions, for editors",
        "replay": "run recorded executions again: same path, same output?",
        "resilience": "try Retriers, Catchers and timeouts, and name weaknesses",
    },
    "Talk to a server": {
        "deploy": "bring the state machines of files and projects onto a server",
        "branch": "list and delete branches of a project, and run tests in one",
        "start": "start an execution; --wait shows its states and its output",
        "pause": "pause an execution, all of a state machine, or all schedules",
        "resume": "resume an execution, all of a state machine, or all schedules",
        "status": "show what is paused, since when and by whom",
        "logs": "show the events of executions, and what their functions print",
        "open": "open the page of an execution or a state machine",
        "export": "print a state machine as ASL, or for another tool",
        "pull": "write state machines and their last executions to files",
        "settings": "export the settings of a project as YAML, or import them",
        "reset": "remove all work from a server that allows it",
    },
}
"""Group -> name of a command -> what it does, in one line."""
_OF_DJANGO = {
    *("--version", "--verbosity", "--settings", "--pythonpath", "--traceback"),
    *("--no-color", "--force-color", "--skip-checks"),
}
"""Options that every command of Django has: they work, and no help shows them."""
_OF_DATABASE = {*COMMANDS["People"], *COMMANDS["Data"]}
"""Commands that work on a database which a server has made."""
_OF_CLIENT = {"lint", "schema", "resilience", *COMMANDS["Talk to a server"]}
_WRONG_USE = 2


def main(arguments: list[str] | None = None) -> None:
    """Run a command of ``stateyard``; end the process with its exit code if that is not 0."""
    words = sys.argv[1:] if arguments is None else arguments
    name = words[0] if words else "help"
    if name in ("help", "-h", "--help"):
        if len(words) <= 1 or words[1] not in _names():
            print(_overview())  # noqa: T201 - it is what was asked for
            return
        words = [words[1], "--help"]
        name = words[0]
    if name in ("version", "--version"):
        print(server_version())  # noqa: T201 - as above
        return
    if name not in _names():
        sys.stderr.write(_unknown(name))
        sys.exit(_WRONG_USE)
    if name in _OF_CLIENT:
        sys.exit(_run_client_command(words))
    _run_management_command(words)


def program() -> str:
    """Return how this process was called, for messages that say what to type next."""
    return "python manage.py" if Path(sys.argv[0]).name == "manage.py" else "stateyard"


def set_up(arguments: list[str]) -> list[str]:
    """Load settings and applications; return the words of a command without ``--data DIR``.

    That option is a setting, so it is read here, for every command, those of Django included. End
    with one line if the settings fail, or if a command needs a database that is not there.
    """
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.config.settings")
    words = _take_data_folder(arguments)
    try:
        _check_database_exists(words)
        if "up" in arguments[:2]:
            importlib.import_module("console.config.local_options").apply_arguments(arguments)
        importlib.import_module(os.environ["DJANGO_SETTINGS_MODULE"])
    except (ValueError, OSError) as error:  # a variable or a file with a value that cannot be
        sys.exit(str(error))
    _load_apps()
    return words


def _load_apps() -> None:
    """Load Django's applications; end with one line if the settings do not go together."""
    import django
    from django.core.exceptions import ImproperlyConfigured

    try:
        django.setup()
    except ImproperlyConfigured as error:
        sys.exit(str(error))


def _take_data_folder(arguments: list[str]) -> list[str]:
    """Put the value of ``--data`` into its variable; return the other words."""
    words, rest = [], iter(arguments)
    for word in rest:
        name, equals, value = word.partition("=")
        if name != "--data":
            words.append(word)
            continue
        folder = value if equals else next(rest, "")
        if not folder:
            sys.exit("--data: got no value, wanted a folder")
        os.environ["STATEYARD_DATA"] = folder
    return words


def _check_database_exists(words: list[str]) -> None:
    """Raise ``SettingError`` for a command that would begin an empty database and a secret."""
    if _OF_DATABASE.isdisjoint(words[:2]):
        return
    from console.config import data_folder, environment, former_name

    former_name.adopt_variables()
    folder = data_folder.data_folder()
    path = former_name.database_file(folder / data_folder.DATABASE_FILE)
    if not environment.read_text("STATEYARD_DATABASE_URL") and not path.exists():
        expected = "the data folder of a server, by --data or STATEYARD_DATA"
        raise environment.SettingError(folder, "no database there", expected)


def _run_client_command(words: list[str]) -> int:
    options = client_parser(words[0]).parse_args(words[1:])
    return int(_client_module(words[0]).run_command(options))


def client_commands() -> set[str]:
    """Return the names of the commands that talk to a server, or need none."""
    return set(_OF_CLIENT)


def client_parser(name: str) -> argparse.ArgumentParser:
    """Return the parser of a client's command."""
    command = _client_module(name)
    parser = argparse.ArgumentParser(prog=f"stateyard {name}", description=f"{command.SUMMARY}.")
    command.add_arguments(parser)
    return parser


def _client_module(name: str) -> Any:
    return importlib.import_module(f"console.cli.commands.{name}")


def _run_management_command(words: list[str]) -> None:
    words = set_up(words)
    from django.core.management import get_commands, load_command_class

    command = load_command_class(get_commands()[words[0]], words[0])
    command.suppressed_base_arguments = _OF_DJANGO
    command.run_from_argv(["stateyard", *words])


def _names() -> set[str]:
    return {name for group in COMMANDS.values() for name in group}


def _unknown(name: str) -> str:
    near = difflib.get_close_matches(name, _names(), 1)
    hint = f" Did you mean {near[0]}?" if near else ""
    return f"stateyard: there is no command {name!r}.{hint} `stateyard help` lists them all.\n"


def _overview() -> str:
    lines = ["Usage: stateyard COMMAND [options]", ""]
    for group, commands in COMMANDS.items():
        lines += [group, *(f"  {name:<20}{text}" for name, text in commands.items()), ""]
    lines.append("stateyard COMMAND --help explains the options of a command.")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
