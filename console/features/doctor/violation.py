"""A violation of an invariant: the execution, and what is wrong with it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Violation:
    """One invariant that does not hold. ``id``: I1 to I17."""

    id: str
    execution_arn: str
    what: str

    def __str__(self) -> str:
        return f"{self.id}\t{self.execution_arn}\t{self.what}"
