"""The tables of signed-in browsers, waiting mails, and projects that need a second factor."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from console.models.people import Project


class BrowserSession(models.Model):
    """A signed-in session: person, time of the sign-in, address and browser.

    ``session_key``: of the session, which may have ended meanwhile. ``browser``: as the browser
    names itself. ``last_seen_ms``: to the minute.
    """

    kept_by_reset = True

    session_key = models.CharField(max_length=40, unique=True)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE)
    since_ms = models.BigIntegerField()
    last_seen_ms = models.BigIntegerField()
    address = models.CharField(max_length=64)
    browser = models.CharField(max_length=256)


class SecondFactorRule(models.Model):
    """A project whose members need a second factor to sign in."""

    kept_by_reset = True

    project = models.OneToOneField(Project, on_delete=models.CASCADE, primary_key=True)


class AccountMail(models.Model):
    """A mail to a person that waits to be sent.

    ``user``: whose address this shall become; null for a new password of each account that has the
    address, if there is any. ``client``: where the request came from. ``next_ms``: not before.
    """

    kept_by_reset = True

    address = models.CharField(max_length=254)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.CASCADE)
    client = models.CharField(max_length=64)
    at_ms = models.BigIntegerField()
    next_ms = models.BigIntegerField()
