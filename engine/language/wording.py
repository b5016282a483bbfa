"""The sentences of the service that several checks use [measured]."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.language.model import QueryLanguage

if TYPE_CHECKING:
    from collections.abc import Iterable


def only_one_of(names: Iterable[str]) -> str:
    """Say that several fields of a group are present."""
    return f"There should only be one of the following fields: [{', '.join(names)}]"


def one_missing(names: Iterable[str]) -> str:
    """Say that no field of a group is there."""
    return f"This object should have only one of the following fields: [{', '.join(names)}]"


def all_missing(names: Iterable[str]) -> str:
    """Return our message for a missing group of fields, any number of which may be present."""
    return f"This object should have at least one of the following fields: [{', '.join(names)}]"


def wrong_language(name: str, language: QueryLanguage) -> str:
    """Say that a field belongs to the other query language."""
    other = {
        QueryLanguage.JSONPATH: QueryLanguage.JSONATA,
        QueryLanguage.JSONATA: QueryLanguage.JSONPATH,
    }[language]
    return (
        f"The QueryLanguage is set to '{language}', but field '{name}' is only supported for the "
        f"'{other}' QueryLanguage"
    )
