"""Write and read the AWS profile with which SDKs and the AWS CLI call this server.

It is a section of a shared credentials file with the key, the region, the endpoint URL and
``disable_host_prefix_injection``. Without that option, clients add ``sync-`` to the host for
StartSyncExecution and TestState, as for AWS, and the host ``sync-127.0.0.1`` does not exist. boto3,
the AWS CLI and other SDKs also read region and endpoint from the credentials file, so one file is
enough. ``docs/how-to/clients.md`` lists what each SDK needs in addition.
"""

from __future__ import annotations

from configparser import Error
from typing import TYPE_CHECKING

from configupdater import ConfigUpdater

from console.config.data_folder import write_private

if TYPE_CHECKING:
    from pathlib import Path

    from configupdater import Section

PROFILE = "stateyard"
"""Name of the profile, in the file and in all examples."""
SAMPLES_PROFILE = "stateyard-samples"
"""Name of the profile with a key of the sample project."""
_ADDRESS = "endpoint_url"
_SECRET = "aws_secret_access_key"


class UnreadableProfileError(Exception):
    """Not a valid credentials file. The message has the reason and, if known, the line."""


def profile_text(
    key_id: str, secret: str, *, address: str, region: str, name: str = PROFILE
) -> str:
    """Return the profile as a section of a credentials file.

    ``address``: the URL of the server, without a trailing slash.
    """
    options = {"aws_access_key_id": key_id, _SECRET: secret, **_client_options(address, region)}
    lines = [f"{name} = {value}" for name, value in options.items()]
    return "\n".join([f"[{name}]", *lines, ""])


def complete_profile(path: Path, *, address: str, before: str, region: str) -> None:
    """Add missing options to this server's profiles in the credentials file ``path``.

    Comments, other profiles and edited options stay unchanged. If the endpoint is that of the last
    start (``before``, "" for none), it becomes ``address``. A file without the profile is left
    alone. Raise ``UnreadableProfileError``; the file is then unchanged.
    """
    file = ConfigUpdater()
    try:
        text = path.read_text(encoding="utf-8")
        file.read_string(text)
    except (Error, OSError, UnicodeDecodeError) as error:
        raise UnreadableProfileError(" ".join(str(error).split())) from None
    for name in (PROFILE, SAMPLES_PROFILE):
        if file.has_section(name):
            _complete_section(file[name], before, _client_options(address, region))
    if str(file) != text:
        write_private(path.resolve(), str(file))


def _complete_section(section: Section, before: str, options: dict[str, str]) -> None:
    for name, value in reversed(options.items()):
        if name not in section:
            if _SECRET in section:  # not behind the comments that belong to the next profile
                section[_SECRET].add_after.option(name, value)
            else:
                section[name] = value
        elif name == _ADDRESS and before and section[name].value == before:
            section[name] = value


def _client_options(address: str, region: str) -> dict[str, str]:
    """Return the options of a profile besides the key."""
    return {"region": region, _ADDRESS: address, "disable_host_prefix_injection": "true"}
