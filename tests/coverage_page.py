"""Write ``docs/reference/coverage.md`` from the tables of the code.

``python -m tests.coverage_page`` writes it.

``tests/test_coverage_page.py`` compares the page with what this makes, so it is never out of date.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

PAGE = Path(__file__).parent.parent / "docs/reference/coverage.md"
_HEAD = """# Coverage

This page lists the supported fields of states, actions of the API and service integrations, for
everybody who wants to know whether a definition or a client will work.
`python -m tests.coverage_page` generates the tables from the code, and a test holds them current.
Differences from AWS are on the pages [Language](asl.md#known-differences), [API](api.md) and
[Integrations](integrations.md).
"""
_MARKS = {True: "yes", False: "-"}

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


def render() -> str:
    """Return the text of the page."""
    parts = (_language(), _actions(), _integrations(), _events())
    return "\n".join([_HEAD, *("\n".join(part) + "\n" for part in parts)])


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    names = list(head)
    yield f"| {' | '.join(names)} |"
    yield "|" + "---|" * len(names)
    for row in rows:
        yield f"| {' | '.join(row)} |"


def _code(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _language() -> Iterator[str]:
    from engine.language.fields import FIELDS, FieldLanguage

    yield "## Fields of states"
    yield ""
    yield "A field of one query language is refused in a state of the other, as on AWS."
    yield ""
    rows = []
    for kind, fields in FIELDS.items():
        by_language = {
            language: sorted(name for name, of in fields.items() if of is language)
            for language in FieldLanguage
        }
        rows.append([kind, *(_code(names) or "-" for names in by_language.values())])
    yield from _table(["state", *(str(language.value) for language in FieldLanguage)], rows)


def _actions() -> Iterator[str]:
    from console.access import least_role
    from console.awsapi import shapes
    from console.awsapi.services import SCHEDULER, SERVICES, STS

    yield "## Actions of the API"
    for service in (*SERVICES, SCHEDULER, STS):
        operations = sorted(shapes.service_model(service.name).operation_names)
        served = [name for name in operations if name in service.handlers]
        yield ""
        yield f"### `{service.name}`: {len(served)}"
        yield ""
        rows = ([f"`{name}`", str(least_role(service.permission(name)))] for name in served)
        yield from _table(["action", "least role"], rows)


def _integrations() -> Iterator[str]:
    from console.integrations import REGISTRY, names
    from engine.language.resources import OPTIMIZED

    yield "## Integrations"
    yield ""
    services = len(names.client_names()) // 100 * 100  # their number grows with botocore
    offered = "[AWS offers](integrations.md#names-of-aws-sdk-integrations)"
    reach = f"more than {services} services with all actions that {offered}"
    yield f"Beside these, `aws-sdk` reaches {reach}."
    yield ""
    patterns = {"": "request", ".sync": "`.sync`", ".sync:2": "`.sync:2`"}
    patterns[".waitForTaskToken"] = "`.waitForTaskToken`"
    rows = [
        [f"`{service}:{action}`", *(_MARKS[pattern in of] for pattern in patterns)]
        for service, actions in sorted(OPTIMIZED.items())
        if service in REGISTRY
        for action, of in sorted(actions.items())
    ]
    yield from _table(["resource", *patterns.values()], rows)


def _events() -> Iterator[str]:
    import engine

    yield "## Events of the history"
    yield ""
    yield (
        "All types of AWS are read and shown, also in imported histories. Those that are "
        "[never written](asl.md#failures-of-tasks-in-the-history) are marked."
    )
    yield ""
    rows = [
        [f"`{name}`", kind.family.value, _MARKS[name not in NEVER_WRITTEN]]
        for name, kind in sorted(engine.EVENT_TYPES.items())
    ]
    yield from _table(["type", "of", "written"], rows)


NEVER_WRITTEN = frozenset(
    {
        "ActivityScheduleFailed",
        "LambdaFunctionScheduleFailed",
        "LambdaFunctionStartFailed",
        "TaskStartFailed",
    }
)


def main() -> None:
    """Write the page."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.config.settings")
    import django

    django.setup()
    PAGE.write_text(render(), encoding="utf-8")


if __name__ == "__main__":
    main()
