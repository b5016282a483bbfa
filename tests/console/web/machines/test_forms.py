"""Forms bring what a page sends into shape, and hold a message for each field that is wrong."""

from __future__ import annotations

from django.http import QueryDict

from console.features.versions.forms import AliasForm
from console.integrations.targets import MachineKey
from console.web.core.forms import (
    OptionField,
    PageForm,
    PresenceField,
    SubsetField,
    TextField,
)
from console.web.machines.forms import StartForm


class Sample(PageForm):
    """One field of each kind."""

    name = TextField()
    raw = TextField(strip=False, lines=True)
    short = TextField(cut=3)
    output = TextField(default="{}")
    hours = OptionField((1, 24), 24)
    status = SubsetField(("A", "B"))
    reveal = PresenceField()


def test_fields_that_were_not_sent_have_their_defaults() -> None:
    """No form needs a field."""
    assert Sample(QueryDict("")).values == {
        "name": "",
        "raw": "",
        "short": "",
        "output": "{}",
        "hours": 24,
        "status": [],
        "reveal": False,
    }


def test_fields_bring_what_was_sent_into_shape() -> None:
    """Blanks go, ends of lines are LF, unknown options read as the default."""
    query = QueryDict("", mutable=True)
    query.update({"name": " a ", "raw": " a\r\nb", "short": "abcd", "output": "", "hours": "2"})
    query.setlist("status", ["B", "C", "A"])
    query["reveal"] = ""
    assert Sample(query).values == {
        "name": "a",
        "raw": " a\nb",
        "short": "abc",
        "output": "",
        "hours": 24,
        "status": ["B", "A"],
        "reveal": True,
    }
    assert Sample(QueryDict("hours=1")).values["hours"] == 1


def test_the_first_wrong_field_has_the_message() -> None:
    """What was typed stays, the wrong field's text too."""
    form = StartForm(QueryDict("name=x&timeout=soon"), MachineKey("default", "machine"))
    assert not form.is_valid()
    assert form.first_error == (
        "timeout",
        "“soon” is not a time limit. Enter whole seconds from 1 to 99999999.",
    )
    assert form.texts["timeout"] == "soon"
    alias = AliasForm(QueryDict("name=7&second=2&share=101"))
    assert not alias.is_valid()
    assert alias.first_error[0] == "name"
