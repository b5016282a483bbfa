"""Check at the start that this server's secret and version fit the database.

A database belongs to the master secret that made its tokens and access keys. It may have been
migrated by a later version.
"""

from __future__ import annotations

import hashlib
import hmac
import pkgutil

from django.conf import settings
from django.core.management.base import CommandError
from django.db import connection

from console import migrations
from console.db.writer import write
from console.models import ServerFact

_NAME = "fingerprint of the secret"
_SINCE = "tables readable since"


class WrongSecret(CommandError):
    """The database belongs to another master secret. Reported without a traceback."""


class NewerTables(CommandError):
    """A later version has migrated the database. Reported without a traceback."""


def claim_database() -> None:
    """Store our secret's fingerprint in a new database; raise ``WrongSecret`` if it differs.

    Raise ``NewerTables`` if a later version has changed the tables incompatibly (G16).
    """
    _check_tables()
    write(_say_since)

    def store() -> str:
        fact, _ = ServerFact.objects.get_or_create(name=_NAME, defaults={"value": _fingerprint()})
        return fact.value

    if not hmac.compare_digest(write(store), _fingerprint()):
        raise WrongSecret(
            f"STATEYARD_SECRET, or without it {settings.DATA_DIR / 'secret'}: this database was "
            "first used with another secret, and none of its task tokens and access keys would "
            "work with this one. Start with that secret, or on another database."
        )


def _check_tables() -> None:
    ours = _migrations()
    with connection.cursor() as cursor:
        cursor.execute("SELECT name FROM django_migrations WHERE app = 'console'")
        unknown = sorted({name for (name,) in cursor.fetchall()} - ours)
    since = ServerFact.objects.filter(name=_SINCE).values_list("value", flat=True).first()
    if unknown and since not in ours:
        raise NewerTables(
            f"the database: got tables of a later version ({', '.join(unknown)}), wanted those of "
            "this one. Start that version, or restore the backup that was made before it came."
        )


def _migrations() -> set[str]:
    return {name for _, name, _ in pkgutil.iter_modules(migrations.__path__)}


def _say_since() -> None:
    """Store the name of the migration that a version must know to run beside this one.

    An even later name of another version stays.
    """
    fact = ServerFact.objects.filter(name=_SINCE).first()
    if fact is None or fact.value < migrations.READABLE_SINCE:
        ServerFact.objects.update_or_create(
            name=_SINCE, defaults={"value": migrations.READABLE_SINCE}
        )


def _fingerprint() -> str:
    key = settings.STATEYARD_TOKEN_KEY
    return hmac.new(key, b"stepyard/fingerprint", hashlib.sha256).hexdigest()
