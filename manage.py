#!/usr/bin/env python
"""Django's command line: ``up`` starts everything."""

from __future__ import annotations

import sys

from console import command_line


def main() -> None:
    """Run a management command, of ours or of Django's."""
    arguments = command_line.set_up(sys.argv)
    from django.core.management import execute_from_command_line

    execute_from_command_line(arguments)


if __name__ == "__main__":
    main()
