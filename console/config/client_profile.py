"""The profile with which AWS's own clients reach this server.

It stands in a shared credentials file: the key, the region, the address, and
``disable_host_prefix_injection``. Without the last a client puts ``sync-`` before the host of
StartSyncExecution and TestState, as AWS has it, and finds nobody at ``sync-127.0.0.1``. boto3, the
AWS CLI and other SDKs read region and address of a profile from the credentials file as they do
from the config file, so one file is enough. ``docs/how-to/clients.md`` says what each SDK needs
beside it.
"""

from __future__ import annotations

import contextlib
from configparser import ConfigParser, Error
from typing import TYPE_CHECKING

from configupdater import ConfigUpdater

from console.config import former_name
from console.config.data_folder import write_private

if TYPE_CHECKING:
    from pathlib import Path

    from configupdater import Section

PROFILE = "stateyard"
"""Name of the profile, in the file and in every example."""
SAMPLES_PROFILE = "stateyard-samples"
"""Name of the profile with a key of the project of the samples."""
_FORMER = {PROFILE: former_name.FORMER, SAMPLES_PROFILE: f"{former_name.FORMER}-samples"}
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
    for profile, former in _FORMER.items():
        if file.has_section(former) and not file.has_section(profile):
            _copy_section(file, former, profile)
        for name in (profile, former):
            if file.has_section(name):
                _complete_section(file[name], before, _client_options(address, region))
    if str(file) != text:
        write_private(path.resolve(), str(file))


def profile_in(path: Path) -> str:
    """Return the name of the profile in a credentials file: the former one, if only that is there.

    A file that cannot be read is left to the reader of the profile.
    """
    file = ConfigParser(strict=False, interpolation=None)
    with contextlib.suppress(Error, OSError, UnicodeDecodeError):
        file.read_string(path.read_text(encoding="utf-8"))
    former = _FORMER[PROFILE]
    return former if file.has_section(former) and not file.has_section(PROFILE) else PROFILE


def _copy_section(file: ConfigUpdater, former: str, profile: str) -> None:
    """Add a profile before the one of the former name, which stays, with the same options."""
    options = {name: str(option.value) for name, option in file[former].items()}
    section = "".join(f"{name} = {value}\n" for name, value in options.items())
    addition = ConfigUpdater()
    addition.read_string(f"[{profile}]\n{section}\n")
    file[former].add_before.section(addition[profile].detach())
    former_name.report(f"the profile [{former}]: it was copied to [{profile}]")


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
