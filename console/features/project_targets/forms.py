"""The forms of targets and functions."""

from __future__ import annotations

from console.web.core.forms import PageForm, TextField


class ChosenTargetForm(PageForm):
    """Which setting: its kind, its name and the revision that was on display."""

    kind = TextField(strip=False)
    name = TextField(strip=False)
    revision = TextField(strip=False)


class OwnTargetForm(PageForm):
    """What every form of a setting has. ``over``: the revision that the reader replaces."""

    name = TextField()
    revision = TextField(strip=False)
    over = TextField(strip=False)


class ServiceForm(OwnTargetForm):
    """An AWS service. An empty key leaves the stored one."""

    endpoint_url = TextField()
    region = TextField()
    access_key_id = TextField()
    secret_access_key = TextField()


class ConnectionForm(OwnTargetForm):
    """A connection of one of three types. An empty secret leaves the stored one."""

    type = TextField(default="API_KEY")
    header = TextField()
    username = TextField()
    authorization_endpoint = TextField()
    method = TextField(default="POST")
    client_id = TextField()
    scope = TextField()
    secret = TextField(strip=False)


class FunctionForm(OwnTargetForm):
    """A function: an address, or a callable in an allowed folder."""

    type = TextField(default="address")
    address = TextField()
    folder = TextField()
    subfolder = TextField()
    handler = TextField()
    timeout = TextField()
    memory = TextField()
