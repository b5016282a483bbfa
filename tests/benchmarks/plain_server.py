"""Start the server with one trick of the fast path replaced by the plain way.

``python -m tests.benchmarks.plain_server TRICK up --port 8083`` takes the arguments of
``manage.py`` after the name of a trick. The product has no such switch: this module replaces
functions before it starts the command. ``python -m tests.benchmarks.fast_path`` times the tricks.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import django
from django.core.management import execute_from_command_line

if TYPE_CHECKING:
    from collections.abc import Callable


def replace(owner: Any, **attributes: Any) -> None:
    """Replace attributes of a module or a class."""
    for name, value in attributes.items():
        setattr(owner, name, value)


def none() -> None:
    """Replace nothing: the server as it is."""


def cursor() -> None:
    """Execute statements by Django's cursor."""
    from django.db import connection

    from console.db import rows as fast

    def cursor_of_this_thread() -> Any:
        return connection.cursor()

    replace(fast, open_cursor=cursor_of_this_thread)


def rows() -> None:
    """Read and insert rows by the ORM."""
    from console.db import rows as fast

    def fetch_one(model: Any, where: str, values: Any) -> Any:
        return model._base_manager.extra(where=[where], params=values).first()  # noqa: S610

    def insert(row: Any, **instead: Any) -> None:
        before = {name: getattr(row, name) for name in instead}
        row.__dict__.update(instead)
        row.save(force_insert=True)
        row.__dict__.update(before)

    def insert_rows(model: Any, rows: Any) -> None:
        model._base_manager.bulk_create([model(**values) for values in rows])

    def insert_all(objects: Any) -> None:
        if objects:
            type(objects[0])._base_manager.bulk_create(objects)

    replace(
        fast, fetch_one=fetch_one, insert=insert, insert_rows=insert_rows, insert_all=insert_all
    )


def loop_thread() -> None:
    """Answer each call on a thread of the pool, short ones as well."""
    from console.awsapi import asgi
    from console.awsapi.operations import call

    asgi._SHORT.clear()
    replace(call, is_embedded=lambda: False)


def group_commit() -> None:
    """Commit each change by itself."""
    from console.db import writer

    replace(writer, _MAX_GROUP=1)


def one_processor() -> None:
    """Let the process run on each processor."""
    os.environ["STATEYARD_PROCESSORS"] = "all"


def freeze() -> None:
    """Let the garbage collector look at what was imported."""
    from console.server import serving

    replace(serving, spare_collections=lambda: None)


TRICKS: dict[str, Callable[[], None]] = {
    trick.__name__: trick
    for trick in (
        none,
        cursor,
        rows,
        loop_thread,
        group_commit,
        one_processor,
        freeze,
    )
}


def main() -> None:
    """Replace a trick and run the command."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.config.settings")
    django.setup()
    TRICKS[sys.argv[1]]()
    execute_from_command_line(["manage.py", *sys.argv[2:]])


if __name__ == "__main__":
    main()
