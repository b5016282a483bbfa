"""Process each page request of a signed-in person (``Hook.PAGE_REQUEST``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from console.features.account import second_step, sessions

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse


def look_at(request: HttpRequest) -> HttpResponse | None:
    """Record the use of the session; redirect a person who lacks a required second factor."""
    sessions.note_request(request)
    return second_step.lead_to_setup(request)
