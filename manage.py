#!/usr/bin/env python
"""Django's command line: ``up`` starts everything."""

from __future__ import annotations

import importlib
import os
import sys


def main() -> None:
    """Run a management command; ``--data DIR`` must be known before the settings are read."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")
    for index, argument in enumerate(sys.argv):
        if argument == "--data" and index + 1 < len(sys.argv):
            os.environ["STEPYARD_DATA"] = sys.argv[index + 1]
        elif argument.startswith("--data="):
            os.environ["STEPYARD_DATA"] = argument.partition("=")[2]
    from django.core.management import execute_from_command_line

    try:
        importlib.import_module(os.environ["DJANGO_SETTINGS_MODULE"])
    except (ValueError, OSError) as error:  # a variable or a file with a value that cannot be
        sys.exit(str(error))
    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
