"""Base form and fields for the pages' forms.

The templates write their own inputs, so these forms never render: each lists the fields that its
page sends, cleans them, and has the error messages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping


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
        """Return all fields, also invalid ones, to show them again."""
        return {name: field.to_python(self[name].data) for name, field in self.fields.items()}

    @property
    def first_error(self) -> tuple[str, str]:
        """Return field and message of the first error, in field order."""
        name = next(name for name in self.fields if name in self.errors)
        return name, str(self.errors[name][0])


class TextField(forms.CharField):
    """A text. ``default``: value of a missing field; ``cut``: maximum length.

    ``lines``: the ends of lines are brought back to LF, where a browser sends CR LF.
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
    """Widget that tells whether a name was sent, whatever its value."""

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
    """The known ones of the texts sent under one name, in the order sent."""

    widget = forms.MultipleHiddenInput

    def __init__(self, choices: Collection[str] | None = None) -> None:
        super().__init__(required=False)
        self._known = choices

    def to_python(self, value: Any) -> list[str]:
        """Return the texts."""
        return [text for text in value or () if self._known is None or text in self._known]
