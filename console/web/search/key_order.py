"""Order executions by start, newest or oldest first.

Indexes of executions end with start and id, so both orders cost the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from django.db.models import Q

if TYPE_CHECKING:
    from collections.abc import Iterable

    from django.db.models import QuerySet

    from console.models import Execution

Key: TypeAlias = tuple[int, int]
"""Start (epoch ms) and number: the place of an execution in every list."""


@dataclass(frozen=True, slots=True)
class KeyOrder:
    """One of the two orders of a list."""

    oldest_first: bool = False

    def sort(self, keys: Iterable[Key]) -> list[Key]:
        """Return keys in this order."""
        return sorted(keys, reverse=not self.oldest_first)

    def nearest(self, keys: Iterable[Key]) -> Key | None:
        """Return the first key in this order, None without any."""
        return min(keys, default=None) if self.oldest_first else max(keys, default=None)

    def keys_of(self, rows: QuerySet[Execution]) -> QuerySet[Execution, Key]:
        """Return the keys of rows in this order."""
        return self.ordered(rows).values_list("start_ms", "pk")

    def ordered(self, rows: QuerySet[Execution]) -> QuerySet[Execution]:
        """Return rows in this order."""
        return rows.order_by(*(("start_ms", "pk") if self.oldest_first else ("-start_ms", "-pk")))

    def after(self, rows: QuerySet[Execution], key: Key | None) -> QuerySet[Execution]:
        """Return the condition for rows after a key; its last part lets the index begin there."""
        if key is None:
            return rows
        if self.oldest_first:
            return rows.filter(Q(start_ms__gt=key[0]) | Q(pk__gt=key[1]), start_ms__gte=key[0])
        return rows.filter(Q(start_ms__lt=key[0]) | Q(pk__lt=key[1]), start_ms__lte=key[0])

    def up_to(self, rows: QuerySet[Execution], key: Key | None) -> QuerySet[Execution]:
        """Return the condition for rows up to and including a key."""
        if key is None:
            return rows
        if self.oldest_first:
            return rows.filter(Q(start_ms__lt=key[0]) | Q(pk__lte=key[1]), start_ms__lte=key[0])
        return rows.filter(Q(start_ms__gt=key[0]) | Q(pk__gte=key[1]), start_ms__gte=key[0])


NEWEST_FIRST = KeyOrder()
