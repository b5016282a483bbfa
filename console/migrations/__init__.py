"""How the tables came to be, and which versions of the program can use them.

A new database begins with the squashed migration. A database of an earlier version goes through
the migrations that it replaces.
"""

READABLE_SINCE = "0024_throttled_api"
"""A version that has this migration works on the tables of every later one (G16).

Later migrations only add: tables, indexes, columns that are NULL or have a ``db_default``. The
first one that does more than that, in a release after the one that no longer needs it, moves this.
"""
