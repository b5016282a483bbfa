"""The command ``stateyard``, and the set-up that it shares with ``manage.py``.

``COMMANDS`` lists the core's commands of ``stateyard``; features declare theirs. Client commands
(``console.cli``) call a server's API and need neither settings nor a data folder. The others are
management commands of Django; ``manage.py`` has Django's own commands, too.
"""

from __future__ import annotations

import argparse
import difflib
import gc
import importlib
import os
import sys
from pathlib import Path

from console.config.version import server_version
from console.feature import declared_features, find_command, has_feature

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
        "administrator": "make somebody an administrator of the server",
        "member": "give somebody a role in a project",
    },
    "Data": {
        "prune": "remove executions that ended long ago",
        "bump_epoch": "fence older processes, after a restore",
    },
    "Definitions": {
        "schema": "print a JSON Schema of definitions, for editors",
    },
    "Talk to a server": {
        "start": "start an execution; --wait shows its states and its output",
        "open": "open the page of an execution or a state machine",
        "reset": "remove all work from a server that allows it",
    },
}
"""Group -> name of a command of the core -> its summary in one line."""
_OF_DJANGO = {
    *("--version", "--verbosity", "--settings", "--pythonpath", "--traceback"),
    *("--no-color", "--force-color", "--skip-checks"),
}
"""Django's options of every command: accepted, but not shown in help texts."""
_OF_DATABASE = ("People", "Data")
"""Groups of commands that need the database of an existing server."""
_CORE_CLIENT_COMMANDS = {"schema", *COMMANDS["Talk to a server"]}
_WRONG_USE = 2


def main(arguments: list[str] | None = None) -> None:
    """Run a command of ``stateyard``; exit with its code unless that is 0."""
    words = sys.argv[1:] if arguments is None else arguments
    name = words[0] if words else "help"
    if name in ("help", "-h", "--help"):
        if len(words) <= 1 or not _group_of(words[1]):
            print(_overview())  # noqa: T201 - it is what was asked for
            return
        words = [words[1], "--help"]
        name = words[0]
    if name in ("version", "--version"):
        print(server_version())  # noqa: T201 - as above
        return
    if not _group_of(name):
        sys.stderr.write(_unknown(name))
        sys.exit(_WRONG_USE)
    _check_feature(name)
    if client_module(name):
        sys.exit(_run_client_command(words))
    _run_management_command(words)


def all_commands() -> dict[str, dict[str, str]]:
    """Return group -> name -> summary of all commands, also of disabled features."""
    groups = {group: {**commands} for group, commands in COMMANDS.items()}
    for feature in declared_features():
        for name, command in feature.commands.items():
            groups[command.group][name] = command.summary
    return groups


def client_commands() -> set[str]:
    """Return the names of the commands that need no local server: they call one or none."""
    names = (name for commands in all_commands().values() for name in commands)
    return {name for name in names if client_module(name)}


def client_module(name: str) -> str:
    """Return the module of a client command, "" for a command of Django."""
    if name in _CORE_CLIENT_COMMANDS:
        return f"console.cli.commands.{name}"
    entry = None if _core_group_of(name) else find_command(name)
    return entry[1].module if entry else ""


def _core_group_of(name: str) -> str:
    return next((group for group, commands in COMMANDS.items() if name in commands), "")


def _group_of(name: str) -> str:
    """Return the group of a command, "" for an unknown name."""
    if group := _core_group_of(name):
        return group
    entry = find_command(name)
    return entry[1].group if entry else ""


def _check_feature(name: str) -> None:
    """Exit with one line for a command of a feature that ``STATEYARD_FEATURES`` leaves out."""
    entry = None if _core_group_of(name) else find_command(name)
    if entry and not _has_feature(entry[0].name):
        sys.exit(f"stateyard: {name}: STATEYARD_FEATURES leaves out the feature {entry[0].name}")


def _has_feature(name: str) -> bool:
    try:
        return has_feature(name)
    except ValueError as error:  # the variable has an unknown feature
        sys.exit(f"stateyard: {error}")


def program() -> str:
    """Return the name under which this program was called, for messages with commands."""
    return "python manage.py" if Path(sys.argv[0]).name == "manage.py" else "stateyard"


def set_up(arguments: list[str]) -> list[str]:
    """Load settings and applications; return the words of a command without ``--data DIR``.

    ``--data`` is a setting, so it is read here for every command, including Django's own. Exit with
    one line if the settings are invalid, or if a command needs a database that does not exist.
    """
    gc.disable()  # collections while modules are loaded find nothing, and took a fifth of a start
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.config.settings")
    words = _take_data_folder(arguments)
    _check_feature(words[1] if words[1:] and Path(words[0]).name == "manage.py" else words[0])
    try:
        _check_database_exists(words)
        if "up" in arguments[:2]:
            importlib.import_module("console.config.local_options").apply_arguments(arguments)
        importlib.import_module(os.environ["DJANGO_SETTINGS_MODULE"])
    except (ValueError, OSError) as error:  # a variable or a file with a value that cannot be
        sys.exit(f"stateyard: {error}")
    _load_apps()
    gc.freeze()
    gc.enable()
    return words


def _load_apps() -> None:
    """Load Django's applications; exit with one line if settings contradict each other."""
    import django
    from django.core.exceptions import ImproperlyConfigured

    try:
        django.setup()
    except ImproperlyConfigured as error:
        sys.exit(f"stateyard: {error}")


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
            sys.stderr.write("stateyard: --data: got no value, wanted a folder\n")
            sys.exit(_WRONG_USE)
        os.environ["STATEYARD_DATA"] = folder
    return words


def _check_database_exists(words: list[str]) -> None:
    """Raise ``SettingError`` for a command that would otherwise create an empty database."""
    names = {word.partition("=")[0] for word in words}
    groups = {_group_of(word) for word in words[:2]}
    if groups.isdisjoint(_OF_DATABASE) and "--imports" not in names:
        return
    from console.config import data_folder, environment

    folder = data_folder.data_folder()
    path = data_folder.database_file(folder)
    if not environment.read_text("STATEYARD_DATABASE_URL") and not path.exists():
        expected = "the data folder of a server, by --data or STATEYARD_DATA"
        raise environment.SettingError(folder, "no database there", expected)


def _run_client_command(words: list[str]) -> int:
    from console.cli.commands import run_client_command

    options = client_parser(words[0]).parse_args(words[1:])
    return run_client_command(client_module(words[0]), options)


def client_parser(name: str) -> argparse.ArgumentParser:
    """Return the argument parser of a client command."""
    command = importlib.import_module(client_module(name))
    parser = argparse.ArgumentParser(prog=f"stateyard {name}", description=f"{command.SUMMARY}.")
    command.add_arguments(parser)
    return parser


def _run_management_command(words: list[str]) -> None:
    words = set_up(words)
    from django.core.management import get_commands, load_command_class

    command = load_command_class(get_commands()[words[0]], words[0])
    command.suppressed_base_arguments = _OF_DJANGO
    command.run_from_argv(["stateyard", *words])


def _unknown(name: str) -> str:
    names = [each for commands in all_commands().values() for each in commands]
    near = difflib.get_close_matches(name, names, 1)
    hint = f" Did you mean {near[0]}?" if near else ""
    return f"stateyard: there is no command {name!r}.{hint} `stateyard help` lists them all.\n"


def _overview() -> str:
    lines = ["Usage: stateyard COMMAND [options]", ""]
    for group, commands in all_commands().items():
        lines += [group, *(f"  {name:<20}{text}" for name, text in commands.items()), ""]
    lines.append("stateyard COMMAND --help explains the options of a command.")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
