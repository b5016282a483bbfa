"""The profile with which AWS's own clients reach this server.

It stands in a shared credentials file: the key, the region, the address, and
``disable_host_prefix_injection``. Without the last a client puts ``sync-`` before the host of
StartSyncExecution and TestState, as AWS has it, and finds nobody at ``sync-127.0.0.1``. boto3, the
AWS CLI and other SDKs read region and address of a profile from the credentials file as they do
from the config file, so one file is enough. ``docs/how-to/clients.md`` says what each SDK needs
beside it.
"""

from __future__ import annotations

from configparser import Error
from typing import TYPE_CHECKING

from configupdater import ConfigUpdater

from console.data_folder import write_private

if TYPE_CHECKING:
    from pathlib import Path

    from configupdater import Section

PROFILE = "stateyard"
"""Name of the profile, in the file and in every example."""
SAMPLES_PROFILE = "stateyard-samples"
"""Name of the profile with a key of the project of the samples."""
_ADDRESS = "endpoint_url"
_SECRET = "aws_secret_access_key"


class UnreadableProfileError(Exception):
    """A credentials file is none. The message says why, with the line if there is one."""


def profile_text(
    key_id: str, secret: str, *, address: str, region: str, name: str = PROFILE
) -> str:
    """Return the profile as a section of a credentials file.

    ``address``: the URL of the server, without a slash at its end.
    """
    options = {"aws_access_key_id": key_id, _SECRET: secret, **_client_options(address, region)}
    lines = [f"{name} = {value}" for name, value in options.items()]
    return "\n".join([f"[{name}]", *lines, ""])


def complete_profile(path: Path, *, address: str, before: str, region: str) -> None:
    """Add to the profiles of this server in ``path`` what they lack, and nothing else.

    Comments, other profiles and whatever a person set stay as they are. The address follows the
    server: if it is the one of the last start (``before``, "" for none), it becomes ``address``. A
    file without the profile is left alone. Raise ``UnreadableProfileError``, with the file as it
    was.
    """
    file = ConfigUpdater()
    try:
        text = path.read_text(encoding="utf-8")
        file.read_string(text)
    except (Error, OSError, UnicodeDecodeError) as error:
        raise UnreadableProfileError(" ".join(str(error).split())) from None
    for profile in (PROFILE, SAMPLES_PROFILE):
        if file.has_section(profile):
            _complete_section(file[profile], before, _client_options(address, region))
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
    """Return what a client must know beside its key."""
    return {"region": region, _ADDRESS: address, "disable_host_prefix_injection": "true"}
