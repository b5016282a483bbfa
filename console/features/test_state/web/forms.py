"""The forms of the page that tests a state."""

from __future__ import annotations

from console.web.core.forms import PageForm, PresenceField, TextField


class SubjectForm(PageForm):
    """Whose state is tested; the address of the page has the same fields.

    ``text``, ``role``, ``revision``: of a definition that is not saved. ``origin``: the execution
    whose input of ``visit`` in state ``step`` is used; ``definition``: ``changed`` for the
    current one of the machine, else that of the execution. ``last_input``: the reader asks for
    what the state got last.
    """

    text = TextField(strip=False, lines=True)
    role = TextField()
    revision = TextField(strip=False)
    origin = TextField(strip=False)
    definition = TextField(strip=False)
    step = TextField(strip=False)
    state = TextField(strip=False)
    visit = TextField(strip=False)
    last_input = PresenceField()


def _text() -> TextField:
    return TextField(strip=False, lines=True)


class TestStateForm(PageForm):
    """The request; its fields are those of ``form.TestRequest``, which checks them."""

    state = _text()
    input = _text()
    variables = _text()
    level = _text()
    mock = _text()
    result = _text()
    mode = _text()
    error = _text()
    cause = _text()
    context = _text()
    retries = _text()
    failures = _text()
    data = _text()  # type: ignore[assignment] # Django takes fields out of the class
    reveal = PresenceField()
