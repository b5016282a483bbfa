"""Tables of browser sessions, queued mails, and projects that require a second factor."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from console.models.people import Project


class BrowserSession(models.Model):
    """A signed-in session: person, time of sign-in, IP address and browser.

    ``session_key``: the key of the session, which may have ended. ``browser``: its User-Agent.
    ``last_seen_ms``: to the minute.
    """

    kept_by_reset = True

    session_key = models.CharField(max_length=40, unique=True)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE)
    since_ms = models.BigIntegerField()
    last_seen_ms = models.BigIntegerField()
    address = models.CharField(max_length=64)
    browser = models.CharField(max_length=256)


class SecondFactorRule(models.Model):
    """A project that requires a second factor of its members."""

    kept_by_reset = True

    project = models.OneToOneField(Project, on_delete=models.CASCADE, primary_key=True)


class AccountMail(models.Model):
    """A queued mail to a person.

    ``user``: the person whose address it confirms; null for new passwords of all accounts with the
    address, if any. ``client``: the IP address of the request. ``next_ms``: the next attempt.
    """

    kept_by_reset = True

    address = models.CharField(max_length=254)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.CASCADE)
    client = models.CharField(max_length=64)
    at_ms = models.BigIntegerField()
    next_ms = models.BigIntegerField()
