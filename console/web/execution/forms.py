"""The forms of an execution's pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.core.exceptions import ValidationError

from console.store.people import shares
from console.web.core.forms import OptionField, PageForm, TextField

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.core.files.uploadedfile import UploadedFile
    from django.utils.datastructures import MultiValueDict

IMPORT_MOST_BYTES = 64 * 1024 * 1024


class NoteForm(PageForm):
    """``act``: ``note`` to write the note; ``assign`` and ``unassign`` change the assignee.

    ``look`` and ``leave`` are what pages of the release before send for the latter two.
    """

    act = TextField(strip=False)
    note = TextField(strip=False)
    next = TextField(strip=False)


class ReplayForm(PageForm):
    """A replay; ``definition``: ``changed`` for the machine's own of now."""

    name = TextField()
    input = TextField()
    variables = TextField()
    definition = TextField(strip=False)


class ShareForm(PageForm):
    """For how many hours a link shows an execution."""

    hours = OptionField(shares.HOURS, 24)


class StopForm(PageForm):
    """The error and the cause that a stopped execution gets."""

    error = TextField(strip=False)
    cause = TextField(strip=False)


class _UploadField(forms.FileField):
    """A file that may be left out, and may be empty."""

    def __init__(self) -> None:
        super().__init__(required=False, allow_empty_file=True)


class ImportForm(PageForm):
    """What the AWS CLI printed, pasted or uploaded; a file comes before a text."""

    history = TextField(strip=False)
    machine = TextField(strip=False)
    execution = TextField(strip=False)
    history_file = _UploadField()
    machine_file = _UploadField()
    execution_file = _UploadField()

    def __init__(
        self, sent: Mapping[str, str], files: MultiValueDict[str, UploadedFile[Any]]
    ) -> None:
        super().__init__(sent, files)

    def clean_history_file(self) -> str:
        """Return the history."""
        return self._text_of("history")

    def clean_machine_file(self) -> str:
        """Return the state machine."""
        return self._text_of("machine")

    def clean_execution_file(self) -> str:
        """Return the execution."""
        return self._text_of("execution")

    def _text_of(self, name: str) -> str:
        """Return what was uploaded, else what was pasted."""
        file = self.cleaned_data[f"{name}_file"]
        if file is None:
            return str(self.cleaned_data[name])
        if (file.size or 0) > IMPORT_MOST_BYTES:
            raise ValidationError(f"“{file.name}” is larger than 64 MiB.")
        return bytes(file.read()).decode("utf-8-sig", "replace")
