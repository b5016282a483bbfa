"""Messages of the service that several checks use [measured]."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.language.model import QueryLanguage

if TYPE_CHECKING:
    from collections.abc import Iterable


def only_one_of(names: Iterable[str]) -> str:
    """Return the message for several fields of an exclusive group."""
    return f"There should only be one of the following fields: [{', '.join(names)}]"


def one_missing(names: Iterable[str]) -> str:
    """Return the message for a group without a field."""
    return f"This object should have only one of the following fields: [{', '.join(names)}]"


def all_missing(names: Iterable[str]) -> str:
    """Return our message for a missing group whose fields may be combined."""
    return f"This object should have at least one of the following fields: [{', '.join(names)}]"


def wrong_language(name: str, language: QueryLanguage) -> str:
    """Return the message for a field of the other query language."""
    other = {
        QueryLanguage.JSONPATH: QueryLanguage.JSONATA,
        QueryLanguage.JSONATA: QueryLanguage.JSONPATH,
    }[language]
    return (
        f"The QueryLanguage is set to '{language}', but field '{name}' is only supported for the "
        f"'{other}' QueryLanguage"
    )
