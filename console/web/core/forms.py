"""Base form and fields for the pages' forms.

The templates write their own inputs, so these forms never render: each lists the fields that its
page sends, cleans them, and has the error messages.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import messages
from django.http import Http404
from django.shortcuts import redirect

from console.db import audit
from console.errors import ServiceError, ValidationException
from console.models import Project
from console.store.people import masks
from console.web.core.addresses import page_address
from console.web.core.scope import require, scope_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from console.models import AuditEntry

LINK_HOURS = {1: "1 hour", 24: "1 day", 168: "7 days"}
"""The lifetime of a link in hours -> its words."""


class PageForm(forms.Form):
    """Base form of a page; all fields are optional."""

    use_required_attribute = False

    @property
    def values(self) -> dict[str, Any]:
        """Return the cleaned values of all valid fields."""
        self.is_valid()
        return self.cleaned_data

    @property
    def texts(self) -> dict[str, Any]:
        """Return the sent texts of all fields, valid or not, to show them again."""
        return {name: field.to_python(self[name].data) for name, field in self.fields.items()}

    @property
    def first_error(self) -> tuple[str, str]:
        """Return field and message of the first error, in field order."""
        name = next(name for name in self.fields if name in self.errors)
        return name, str(self.errors[name][0])


class TextField(forms.CharField):
    """A text. ``default``: value of a missing field; ``cut``: maximum length.

    ``lines``: line ends are converted to LF, because browsers send CR LF.
    """

    def __init__(
        self,
        *,
        strip: bool = True,
        default: str = "",
        cut: int | None = None,
        lines: bool = False,
    ) -> None:
        super().__init__(required=False, strip=strip)
        self._default, self._cut, self._lines = default, cut, lines

    def to_python(self, value: Any) -> str:
        """Return the cleaned text."""
        if value is None:
            return self._default
        text = str(super().to_python(value))
        return (text.replace("\r\n", "\n") if self._lines else text)[: self._cut]


class _Presence(forms.HiddenInput):
    """Widget for a field that is true if its name was sent, with any value."""

    def value_from_datadict(self, data: Mapping[str, Any], files: Any, name: str) -> bool:  # noqa: ARG002 - Django's signature
        return name in data


class PresenceField(forms.Field):
    """True if its name was sent: a checkbox or a button."""

    widget = _Presence

    def __init__(self) -> None:
        super().__init__(required=False)


class OptionField(forms.CharField):
    """A choice of whole numbers; other values become ``default``."""

    def __init__(self, options: Collection[int], default: int) -> None:
        super().__init__(required=False)
        self._options, self._default = {str(option): option for option in options}, default

    def to_python(self, value: Any) -> Any:
        """Return the number."""
        return self._options.get(str(value), self._default)


class SubsetField(forms.Field):
    """A list of choices sent under one name, in the order sent; unknown values are dropped."""

    widget = forms.MultipleHiddenInput

    def __init__(self, choices: Collection[str] | None = None) -> None:
        super().__init__(required=False)
        self._known = choices

    def to_python(self, value: Any) -> list[str]:
        """Return the texts."""
        return [text for text in value or () if self._known is None or text in self._known]


if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from django.http import HttpRequest, HttpResponse

    from console.models import StateMachine
    from console.web.core.scope import Scope

    FormActions = Mapping[
        str,
        tuple[str, type[PageForm], Callable[[Scope, StateMachine, dict[str, Any]], str]],
    ]


class ActForm(PageForm):
    """The name of the action that a form asks for."""

    act = TextField(strip=False)


def answer_form_action(
    request: HttpRequest,
    machine_name: str,
    actions: FormActions,
    page: Callable[..., HttpResponse],
    address: str,
    refused: Callable[[str, str], dict[str, Any]],
) -> HttpResponse:
    """Show ``page``; a POST runs the named action and redirects to ``address``.

    ``actions``: value of ``act`` -> (required API action, form, function that runs the action and
    returns a message). ``refused``: called with ``act`` and an error message; returns the context
    that shows the error with the typed values, with status 422.
    """
    scope = scope_of(request)
    machine = scope.machine(machine_name)
    if request.method == "GET":
        return page(request, machine)
    act: str = ActForm(request.POST).values["act"]
    if act not in actions:
        raise Http404(f"This page has no action “{act}”.")
    action, form_class, run = actions[act]
    require(scope, action)
    form = form_class(request.POST)
    try:
        if not form.is_valid():
            raise ValidationException(form.first_error[1])
        messages.success(request, run(scope, machine, form.values))
    except ServiceError as error:
        typed = dict(form.data.items())
        return page(request, machine, status=422, typed=typed, **refused(act, error.message))
    return redirect(page_address(scope, address, machine.name))


@dataclass(frozen=True, slots=True)
class SaveConflict:
    """Another person's save. ``revision``: the revision that *Save mine over theirs* replaces.

    ``saved_by``: "" and ``saved_ms``: None if unknown; ``theirs``: label and text of fields.
    """

    revision: str
    saved_by: str
    saved_ms: int | None
    theirs: tuple[tuple[str, str], ...]


def paths_conflict(project: Project) -> SaveConflict:
    """Return the conflict in the masked paths."""
    now = Project.objects.get(pk=project.pk).masked
    entry = audit.find_latest(project, project.name, "PutMaskedPaths")
    return save_conflict(masks.revision_of(now), entry, (("Their paths", now),))


def save_conflict(
    revision: str, entry: AuditEntry | None, theirs: tuple[tuple[str, str], ...]
) -> SaveConflict:
    """Return the conflict from an audit entry and the present fields."""
    by, at_ms = (entry.actor, entry.at_ms) if entry else ("", None)
    return SaveConflict(revision, by, at_ms, theirs)
