"""Convert botocore's names to those of the AWS SDK for Java 2.x, used by ``aws-sdk`` Tasks.

botocore's models have the names of the wire (``DBInstanceIdentifier``, ``DBInstanceNotFoundFault``,
``Database Migration Service``). The SDK makes three kinds of Java names of them:

* a field becomes a method (``dbInstanceIdentifier``): only a run of capitals at its beginning
  changes, so ``SourceDBInstanceIdentifier`` and ``MultiAZ`` stay as they are;
* a class is written word by word (``DbInstanceNotFoundException``);
* a service is a class without the words for its owner (``DatabaseMigration``).

Step Functions writes fields with a capital at the beginning (``DbInstanceIdentifier``). [measured]
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    FieldName = Callable[[Any, str], str]
    """Return how state machines write a member of a shape (botocore's, by its name)."""

_FIRST_RUN = re.compile(r"[A-Za-z][A-Z]+")
_SEPARATORS = re.compile(r"[^A-Za-z0-9]+")
_WORD_ENDS = (
    # Each puts a blank between its two groups; the order matters.
    re.compile(r"([^a-z]{2,})(v[0-9]+)"),  # TESTv4 -> TEST v4
    re.compile(r"([^A-Z]{2,})(V[0-9]+)"),  # the same with a large V
    re.compile(r"([a-z])(?=([A-Z][a-zA-Z0-9]))"),  # acmSuccess -> acm Success
    re.compile(r"([A-Z]+)([A-Z][a-z])"),  # ACMSuccess -> ACM Success
    re.compile(r"([0-9])(?=([a-zA-Z]))"),  # s3ec2 -> s3 ec2
)
_NULL = ("AttributeValue", "NULL")
"""DynamoDB's null: the SDK calls it ``nul``, because ``null`` is a word of Java."""


def capitalized_name(_shape: Any, member: str) -> str:
    """Return a member as optimized integrations write it: the model's name, capitalized."""
    return member[:1].upper() + member[1:]


def sdk_field_name(shape: Any, member: str) -> str:
    """Return a member as ``aws-sdk`` integrations write it: ``DBInstances`` -> ``DbInstances``."""
    return "Nul" if (shape.name, member) == _NULL else spell_field(member)


@lru_cache(maxsize=65_536)
def spell_field(member: str) -> str:
    """Return a field's name with its leading capitals as one word.

    The last capital of the run belongs to the next word if a small letter follows it.
    """
    run = _FIRST_RUN.match(member)
    if run is None:
        return member[:1].upper() + member[1:]
    end = run.end() - (1 if member[run.end() : run.end() + 1].islower() else 0)
    return member[:1].upper() + member[1:end].lower() + member[end:]


@lru_cache(maxsize=4_096)
def class_name(name: str) -> str:
    """Return the name of a Java class: ``KMSInvalidState`` -> ``KmsInvalidState``."""
    text = _SEPARATORS.sub(" ", name)
    text = _WORD_ENDS[0].sub(r"\1 \2 ", text)
    text = _WORD_ENDS[1].sub(r"\1 \2 ", text)
    text = _WORD_ENDS[2].sub(r"\1 ", text)
    text = _WORD_ENDS[3].sub(r"\1 \2", text)
    text = _WORD_ENDS[4].sub(r"\1 ", text)
    return "".join(word[:1].upper() + word[1:].lower() for word in text.split())


def exception_class(shape: str) -> str:
    """Return the class of an error: ``KMSInvalidState`` -> ``KmsInvalidStateException``."""
    stem = shape.removesuffix("Fault").removesuffix("Exception")
    return f"{class_name(stem)}Exception"


def service_class(service_id: str) -> str:
    """Return the SDK's name of a service: ``Config Service`` -> ``Config``."""
    name = class_name(service_id)
    for owner in ("Amazon", "Aws"):
        name = name.removeprefix(owner)
    return name.removesuffix("Service")
