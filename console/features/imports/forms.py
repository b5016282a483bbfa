"""Forms of the import page."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from django import forms
from django.core.exceptions import ValidationError

from console.web.core.forms import PageForm, TextField

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.core.files.uploadedfile import UploadedFile
    from django.utils.datastructures import MultiValueDict

IMPORT_MOST_BYTES = 64 * 1024 * 1024


class _FilesInput(forms.FileInput):
    """Several files under one name."""

    allow_multiple_selected = True

    def value_from_datadict(self, data: Any, files: Any, name: str) -> Any:  # noqa: ARG002 - Django's signature
        """Return all files; Django's own input returns the last one."""
        return files.getlist(name)


class FetchForm(PageForm):
    """The ARN of an execution of AWS."""

    arn = TextField()


class ImportForm(PageForm):
    """Output of the AWS CLI, pasted or as files; files take precedence.

    The name of a file, such as ``history.json``, or else its content determines which of the three
    it is.
    """

    history = TextField(strip=False)
    machine = TextField(strip=False)
    execution = TextField(strip=False)
    uploads = forms.Field(required=False, widget=_FilesInput)

    def __init__(
        self, sent: Mapping[str, str], files: MultiValueDict[str, UploadedFile[Any]]
    ) -> None:
        super().__init__(sent, files)

    def clean_uploads(self) -> dict[str, str]:
        """Return the texts of the files by field."""
        texts: dict[str, str] = {}
        for file in self.cleaned_data["uploads"] or ():
            if (file.size or 0) > IMPORT_MOST_BYTES:
                raise ValidationError(f"“{file.name}” is larger than 64 MiB.")
            text = bytes(file.read()).decode("utf-8-sig", "replace")
            name = _printed_field(str(file.name), text)
            if name in texts:
                raise ValidationError(f"“{file.name}” is a second {_NOUNS[name]}. Choose one.")
            texts[name] = text
        return texts

    @property
    def printed(self) -> dict[str, str]:
        """Return the three texts by field, "" for a missing one."""
        pasted = {name: self.values[name] for name in _NOUNS}
        return {**pasted, **self.values["uploads"]}


_NOUNS = {"history": "event history", "machine": "state machine", "execution": "execution"}
_MEMBERS = {
    "events": "history",
    "definition": "machine",
    "StartAt": "machine",
    "executionArn": "execution",
}
"""Member of a printed object -> field; the first present member of a field counts."""


def _printed_field(file_name: str, text: str) -> str:
    """Return the field that a file is for; raise ``ValidationError`` if none."""
    stem = file_name.rpartition("/")[2].partition(".")[0].lower()
    if stem in _NOUNS:
        return stem
    try:
        printed = json.loads(text)
    except (ValueError, RecursionError):
        raise ValidationError(f"“{file_name}” is not JSON.") from None
    members = printed if isinstance(printed, dict) else {}
    field = next((_MEMBERS[name] for name in _MEMBERS if name in members), None)
    if field is None:
        kinds = "an event history, a state machine or an execution"
        raise ValidationError(f"“{file_name}” is not AWS CLI output of {kinds}.")
    return field
