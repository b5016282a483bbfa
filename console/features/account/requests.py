"""Look at each request for a page of a person who is signed in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from console.features.account import second_step, sessions

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse


def look_at(request: HttpRequest) -> HttpResponse | None:
    """Note the use of the session; redirect a person without a required second factor."""
    sessions.note_request(request)
    return second_step.lead_to_setup(request)
