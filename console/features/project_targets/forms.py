"""Forms of targets and functions."""

from __future__ import annotations

from console.web.core.forms import PageForm, TextField


class ChosenTargetForm(PageForm):
    """The selected setting: kind, name, and displayed revision."""

    kind = TextField(strip=False)
    name = TextField(strip=False)
    revision = TextField(strip=False)


class OwnTargetForm(PageForm):
    """The common fields of all settings. ``over``: the revision to overwrite."""

    name = TextField()
    revision = TextField(strip=False)
    over = TextField(strip=False)


class ServiceForm(OwnTargetForm):
    """An AWS service. An empty key keeps the stored one."""

    endpoint_url = TextField()
    region = TextField()
    access_key_id = TextField()
    secret_access_key = TextField()


class ConnectionForm(OwnTargetForm):
    """A connection of one of three types. An empty secret keeps the stored one."""

    type = TextField(default="API_KEY")
    header = TextField()
    username = TextField()
    authorization_endpoint = TextField()
    method = TextField(default="POST")
    client_id = TextField()
    scope = TextField()
    secret = TextField(strip=False)


class FunctionForm(OwnTargetForm):
    """A function: a URL, or a callable in an allowed folder."""

    type = TextField(default="address")
    address = TextField()
    folder = TextField()
    subfolder = TextField()
    handler = TextField()
    timeout = TextField()
    memory = TextField()
