"""Job of the leading worker: refresh people's roles from their providers."""

from __future__ import annotations

from django.conf import settings

from console.feature import PeriodicJob


def follow_claims() -> None:
    """Refresh the roles of all followed people who are due."""
    if settings.STATEYARD_OIDC:  # else django-allauth is not loaded
        from console.features.sign_in import refresh

        refresh.follow_claims()


JOBS = (PeriodicJob("claims of providers", follow_claims, every_s=10.0),)
