"""What the leading worker does for the sign-in: it asks providers about people."""

from __future__ import annotations

from django.conf import settings

from console.feature import PeriodicJob


def follow_claims() -> None:
    """Let everybody's roles follow the claims of their provider."""
    if settings.STATEYARD_OIDC:  # else django-allauth is not loaded
        from console.features.sign_in import refresh

        refresh.follow_claims()


JOBS = (PeriodicJob("claims of providers", follow_claims, every_s=10.0),)
