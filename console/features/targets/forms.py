"""The form of a state machine's options."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from console.store.machines import machine_options
from console.web.core.forms import PageForm, TextField

if TYPE_CHECKING:
    from collections.abc import Mapping


class OptionsForm(PageForm):
    """The submitted tags among the options of a machine."""

    def __init__(self, sent: Mapping[str, Any]) -> None:
        super().__init__(sent)
        self.fields = {key: TextField(strip=False) for key in machine_options.VALUES if key in sent}
