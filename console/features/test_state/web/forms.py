"""Forms of the page *Test a state*."""

from __future__ import annotations

from console.web.core.forms import PageForm, PresenceField, TextField


class SubjectForm(PageForm):
    """The definition to test, and the source of its input; also used as query string.

    ``text``, ``role``, ``revision``: an unsaved definition from the editor. ``origin``: name of the
    execution that supplies the input; ``step`` and ``visit``: its state and the number of the
    visit. ``definition``: ``changed`` for the current definition of the machine, else the
    definition of ``origin`` is used. ``state``: the state to test. ``last_input``: the reader
    clicked *Use the last input*.
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
    """A TestState request, with the fields of ``form.TestRequest``."""

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
